"""Which process is which rank, and which ranks did not come to their end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from quipu.modeling.limits import whole_number
from quipu.modeling.printable import counted

from ..archive.run import RankRecord
from ..launch.raw_folder import RankFile, ranges_text
from ..profile.reader import ProcessProfile, ProfileState

_RETURNED = (
    " returned from main without MPI_Finalize, which destructors of static objects may call: "
    "what they do is not simulated"
)


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
    """Return the processes in order of rank, start and pid; those that are no ranks of the run are left out.

    The rank is what the process itself says (attribute "rank"), else what the shim wrote for its pid and host, else
    that of the process that it was forked from. If others say how many ranks there are, the rest are no ranks, as
    processes that MPI_Comm_spawn started, unless all are; else they are numbered in order of host and pid.
    """
    profiles = list(profiles)
    apart = any(profile.attributes.get("spawned") != "1" for profile in profiles)
    by_process = {(file.host, file.pid): file.rank for file in files}
    known: list[RankedProcess] = []
    unknown: list[ProcessProfile] = []
    for profile in profiles:
        host, text = profile.attributes.get("host", ""), profile.attributes.get("rank", "")
        if apart and profile.attributes.get("spawned") == "1":
            continue
        number = whole_number(text)
        if number is not None and number < 1 << 31:
            known.append(RankedProcess(number, host, profile))
            by_process.setdefault((host, profile.pid), number)
        else:
            unknown.append(profile)
    unknown.sort(key=lambda profile: (profile.started_epoch_ns, profile.pid))
    rest = []
    for profile in unknown:  # parents begin before their children
        host, parent = profile.attributes.get("host", ""), whole_number(profile.attributes.get("forked_from", ""))
        rank = by_process.get((host, profile.pid))
        if rank is None and parent is not None:
            rank = by_process.get((host, parent))
        if rank is None:
            rest.append(profile)
            continue
        by_process.setdefault((host, profile.pid), rank)
        known.append(RankedProcess(rank, host, profile))
    if not any(profile.profile.attributes.get("ranks") for profile in known):
        following = max((process.rank for process in known), default=-1) + 1
        rest.sort(key=lambda profile: (profile.attributes.get("host", ""), profile.pid, profile.path.name))
        for number, profile in enumerate(rest, start=following):
            known.append(RankedProcess(number, profile.attributes.get("host", ""), profile))
    return sorted(known, key=lambda p: (p.rank, p.profile.started_epoch_ns, p.profile.pid, p.profile.path.name))


def judge(
    processes: list[RankedProcess], files: Iterable[RankFile], foreign: Iterable[ProcessProfile] = ()
) -> Judgement:
    """Return what is doubtful: ranks that were ended early, that left no profile, or whose profile is damaged.

    foreign: profiles that were left out, which is doubtful, too. What a rank forks is not to end MPI, and often ends
    with _exit or becomes another program, as POSIX advises: that is told, and no numbers of the rank are missing.
    """
    children = _beside_mpi(processes)
    early: dict[str, list[int]] = defaultdict(list)
    ranks_by_text: dict[str, list[int]] = defaultdict(list)
    left: list[int] = []
    returned: list[int] = []
    partial = False
    expected = 0
    for process in processes:
        profile = process.profile
        expected = max(expected, whole_number(profile.attributes.get("ranks", ""), 9) or 0)
        child = id(profile) in children
        end = "" if child else _early_end(profile)
        if end:
            early[end].append(process.rank)
        if child and profile.state is ProfileState.RUNNING:
            left.append(process.rank)
        if not child and not end and not _finalized(profile):
            returned.append(process.rank)
        for text in profile.problems:
            ranks_by_text[f": {text}"].append(process.rank)
        mpi_problem = profile.attributes.get("mpi_problem", "")
        if mpi_problem:
            ranks_by_text[f": {mpi_problem}"].append(process.rank)
        lost = profile.damaged or bool(profile.error) or profile.lost > 0 or bool(mpi_problem)
        partial = partial or bool(end) or lost
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
    if returned:
        problems.append(f"{'the program' if len(returned) == len(processes) else _ranks(returned)}{_RETURNED}")
    if left:
        problems.append(
            f"{len(left)} {'process' if len(left) == 1 else 'processes'} that {_ranks(left)} forked ended with _exit, "
            "exec or a signal: what was counted until then is in the numbers of the rank"
        )
    pids = sorted(profile.pid for profile in foreign)
    if pids:
        many = counted(len(pids), "process is no rank", "processes are no ranks")
        named = f"{', '.join(map(str, pids[:10]))}{' ...' if len(pids) > 10 else ''}"
        problems.append(
            f"{many} of this run (started by MPI_Comm_spawn or beside it) and left out: {named}; profiles of such stay "
            "beside the run (.left-out-…): quipu merge makes a run of them"
        )
    unseen = expected - len(measured) - len(missing)
    if unseen > 0:
        problems.append(f"{unseen} of {expected} ranks left nothing at all")
    return Judgement(tuple(problems), tuple(missing.values()), partial or bool(missing) or unseen > 0 or bool(pids))


def _beside_mpi(processes: Iterable[RankedProcess]) -> set[int]:
    """Return the profiles, by id, of processes that were forked by one in which MPI had begun: that is not theirs."""
    ranks = {(process.host, process.profile.pid): process.profile for process in processes}
    found = set()
    for process in processes:
        parent = whole_number(process.profile.attributes.get("forked_from", ""))
        of = None if parent is None else ranks.get((process.host, parent))
        if of is not None and of is not process.profile and "mpi_library" in of.attributes:
            found.add(id(process.profile))
    return found


def _finalized(profile: ProcessProfile) -> bool:
    """Whether MPI ended, if it began."""
    return "mpi_library" not in profile.attributes or profile.attributes.get("mpi_finalized") == "1"


def _early_end(profile: ProcessProfile) -> str:
    if not _finalized(profile) and profile.attributes.get("returned") != "1":
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
