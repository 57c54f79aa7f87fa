"""Which process is which rank, and which ranks did not come to their end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ..archive.run import RankRecord
from ..launch.raw_folder import RankFile, ranges_text
from ..profile.reader import ProcessProfile, ProfileState


@dataclass(frozen=True, eq=False)
class RankedProcess:
    """A profile with its place in the run."""

    rank: int
    host: str
    profile: ProcessProfile


@dataclass(frozen=True)
class Judgement:
    """What is doubtful about a run: texts, ranks that left no profile, and whether numbers are missing."""

    problems: tuple[str, ...]
    missing: tuple[RankRecord, ...]
    partial: bool


def assign_ranks(profiles: Iterable[ProcessProfile], files: Iterable[RankFile]) -> list[RankedProcess]:
    """Return the processes in order of rank, start and pid.

    The rank is what the process itself says (attribute "rank"), else what the shim wrote for its pid and host; the
    rest are numbered after those, in order of host and pid.
    """
    by_process = {(file.host, file.pid): file.rank for file in files}
    known: list[RankedProcess] = []
    unknown: list[ProcessProfile] = []
    for profile in profiles:
        host = profile.attributes.get("host", "")
        text = profile.attributes.get("rank", "")
        if text.isascii() and text.isdigit() and len(text) < 20 and int(text) < 1 << 31:
            known.append(RankedProcess(int(text), host, profile))
        elif (host, profile.pid) in by_process:
            known.append(RankedProcess(by_process[host, profile.pid], host, profile))
        else:
            unknown.append(profile)
    following = max((process.rank for process in known), default=-1) + 1
    unknown.sort(key=lambda profile: (profile.attributes.get("host", ""), profile.pid, profile.path.name))
    for number, profile in enumerate(unknown, start=following):
        known.append(RankedProcess(number, profile.attributes.get("host", ""), profile))
    return sorted(known, key=lambda p: (p.rank, p.profile.started_epoch_ns, p.profile.pid, p.profile.path.name))


def judge(processes: list[RankedProcess], files: Iterable[RankFile]) -> Judgement:
    """Return what is doubtful: ranks that were ended early, that left no profile, or whose profile is damaged."""
    early: dict[str, list[int]] = defaultdict(list)
    ranks_by_text: dict[str, list[int]] = defaultdict(list)
    partial = False
    expected = 0
    for process in processes:
        profile = process.profile
        announced = profile.attributes.get("ranks", "")
        if announced.isascii() and announced.isdigit():
            expected = max(expected, int(announced[:9]))
        end = _early_end(profile)
        if end:
            early[end].append(process.rank)
        for text in profile.problems:
            ranks_by_text[f": {text}"].append(process.rank)
        partial = partial or bool(end) or profile.damaged or bool(profile.error)
    measured = {process.rank for process in processes}
    missing = {
        file.rank: RankRecord(file.rank, file.host, file.pid, ranges_text(file.affinity), state="no profile")
        for file in files
        if file.rank not in measured
    }
    if missing:
        text = " left no profile: not built with the Quipu compiler wrappers and no MPI, or killed at its very start"
        ranks_by_text[text].extend(missing)
    problems = [f"{_ranks(ranks)}{text}: {_until_then(ranks)}" for text, ranks in early.items()]
    problems += [f"{_ranks(ranks)}{text}" for text, ranks in ranks_by_text.items()]
    unseen = expected - len(measured) - len(missing)
    if unseen > 0:
        problems.append(f"{unseen} of {expected} ranks left nothing at all")
    return Judgement(tuple(problems), tuple(missing.values()), partial or bool(missing) or unseen > 0)


def _early_end(profile: ProcessProfile) -> str:
    if "mpi_library" in profile.attributes and profile.attributes.get("mpi_finalized") != "1":
        return " ended before MPI_Finalize"
    if profile.state is ProfileState.RUNNING:
        return " ended before the program could finish"
    return ""


def _until_then(ranks: list[int]) -> str:
    if len(set(ranks)) == 1:
        return "its numbers are what it had counted until then"
    return "their numbers are what they had counted until then"


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(set(ranks)) == 1 else f"ranks {ranges_text(ranks)}"
