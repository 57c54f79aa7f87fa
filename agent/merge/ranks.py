# SPDX-License-Identifier: Apache-2.0
"""Assign ranks to processes, and find ranks whose measurements are missing or incomplete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quipu.modeling.limits import whole_number
from quipu.modeling.printable import counted

from ..archive.metadata import RunMetadata
from ..archive.run import RankRecord
from ..launch.raw_folder import RankFile, ranges_text
from ..profile.reader import ProcessProfile, ProfileState

ENDED_WELL = RunMetadata(exit_code=0)
_MOST_NAMED = 4  # largest number of processes that a message names
_RETURNED = " returned from main without MPI_Finalize: MPI calls of destructors of static objects are not simulated"


@dataclass(frozen=True, eq=False)
class RankedProcess:
    """A profile and its rank in the run."""

    rank: int
    host: str
    profile: ProcessProfile


@dataclass(frozen=True)
class Judgement:
    """The problems of a run.

    problems: texts for the user. missing: records of the ranks without a profile. partial: whether measurements are
    missing, so that models must not use the run.
    """

    problems: tuple[str, ...]
    missing: tuple[RankRecord, ...]
    partial: bool


def assign_ranks(profiles: Iterable[ProcessProfile], files: Iterable[RankFile]) -> list[RankedProcess]:
    """Return the processes in order of rank, start and process id, without processes that are not ranks of the run.

    files: the files that the shim (quipu-exec) wrote when it started each rank. The rank of a process comes from the
    first available source: the attribute "rank" of its profile, the file of the shim for its host and process id, or
    the rank of the process that forked it. Processes that MPI_Comm_spawn started are left out if there are others. If
    some process recorded the number of ranks, processes without a known rank are left out, too. Otherwise they get the
    next numbers, in order of host and process id.
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
    rest = sorted(unknown, key=lambda profile: (profile.start_ns, profile.pid))
    found = True
    while found:  # repeated, because a child may seem to begin before its parent if a clock was set
        found, unknown, rest = False, rest, []
        for profile in unknown:
            host, parent = profile.attributes.get("host", ""), whole_number(profile.attributes.get("forked_from", ""))
            rank = by_process.get((host, profile.pid))
            if rank is None and parent is not None:
                rank = by_process.get((host, parent))
            if rank is None:
                rest.append(profile)
                continue
            by_process.setdefault((host, profile.pid), rank)
            known.append(RankedProcess(rank, host, profile))
            found = True
    if not any(profile.profile.attributes.get("ranks") for profile in known):
        following = max((process.rank for process in known), default=-1) + 1
        rest.sort(key=lambda profile: (profile.attributes.get("host", ""), profile.pid, profile.path.name))
        for number, profile in enumerate(rest, start=following):
            known.append(RankedProcess(number, profile.attributes.get("host", ""), profile))
    return sorted(known, key=lambda p: (p.rank, p.profile.start_ns, p.profile.pid, p.profile.path.name))


def judge(
    processes: list[RankedProcess],
    files: Iterable[RankFile],
    foreign: Iterable[ProcessProfile] = (),
    metadata: RunMetadata = ENDED_WELL,
) -> Judgement:
    """Return the problems of a run: processes with missing measurements, and ranks without a profile.

    - processes: the result of `assign_ranks`. files: the files of the shim, one for each started rank.
    - foreign: profiles of processes that are not ranks of the run, which is also a problem.
    - metadata: contains how the launch ended.

    A profile contains all counts until the end of its process. If the launch ended without an error, the program
    intended that a process called exec or _exit or was killed, so this is no problem. A rank that initialized MPI must
    call MPI_Finalize, except a process that was forked after MPI_Init.
    """
    children = _forked_after_init(processes)
    replaced = _replaced(processes)
    well = metadata.exit_code == 0 and not metadata.partial
    texts: dict[str, list[RankedProcess]] = defaultdict(list)
    left: list[RankedProcess] = []
    returned: list[int] = []
    partial = False
    expected = 0
    for process in processes:
        profile = process.profile
        expected = max(expected, whole_number(profile.attributes.get("ranks", ""), 9) or 0)
        child = id(profile) in children
        unfinished = not child and not _finalized(profile)
        cut = profile.state is ProfileState.RUNNING and id(profile) not in replaced
        if unfinished and profile.attributes.get("returned") == "1":
            returned.append(process.rank)
        elif unfinished:
            texts[" ended before MPI_Finalize"].append(process)
            partial = True
        elif cut and (well or child or "forked_from" in profile.attributes):
            left.append(process)
        elif cut:
            texts[" ended before the program could finish"].append(process)
            partial = True
        for text in (*profile.problems, *_problems_of_mpi(profile, metadata)):
            texts[f": {text}"].append(process)
        partial = partial or profile.damaged or bool(profile.error) or profile.lost > 0
        partial = partial or bool(_problems_of_mpi(profile, metadata))
    measured = {process.rank for process in processes}
    missing = {
        file.rank: RankRecord(file.rank, file.host, file.pid, ranges_text(file.affinity), state="no profile")
        for file in files
        if file.rank not in measured
    }
    problems = [f"{_ranks(_numbers(own))}{text}{_of_early_end(text, own)}" for text, own in texts.items()]
    if missing:
        text = " wrote no profile: it was built without the compiler wrappers and without MPI, or killed at its start"
        problems.append(f"{_ranks(list(missing))}{text}")
    if returned:
        problems.append(f"{'the program' if len(returned) == len(processes) else _ranks(returned)}{_RETURNED}")
    if left:
        problems.append(
            f"{_named(left)} of {_ranks(_numbers(left))} ended by _exit, exec or a signal of the program: the results "
            "contain their counts until then"
        )
    pids = sorted(profile.pid for profile in foreign)
    if pids:
        many = counted(len(pids), "process is not a rank", "processes are not ranks")
        named = f"{', '.join(map(str, pids[:10]))}{' ...' if len(pids) > 10 else ''}"
        problems.append(
            f"{many} of this run (MPI_Comm_spawn, or a second launch) and left out: {named}; their profiles are in a "
            "raw folder next to the run (.left-out-…): quipu merge makes a run of them"
        )
    unseen = expected - len(measured) - len(missing)
    if unseen > 0:
        problems.append(f"{unseen} of {expected} ranks left no files")
    return Judgement(tuple(problems), tuple(missing.values()), partial or bool(missing) or unseen > 0 or bool(pids))


# Name of a process that starts ranks → the command that users call. The kernel limits names to 15 characters.
_CALLED = {
    "prterun": "mpirun",
    "orterun": "mpirun",
    "orted": "mpirun",
    "prted": "mpirun",
    "hydra_pmi_proxy": "mpiexec",
    "slurmstepd": "srun",
}


def _problems_of_mpi(profile: ProcessProfile, metadata: RunMetadata) -> tuple[str, ...]:
    """Return texts about MPI calls that were not counted, or a number of ranks that differs from the launch."""
    attributes = profile.attributes
    found = [attributes["mpi_problem"]] if attributes.get("mpi_problem") else []
    size, launched = whole_number(attributes.get("ranks", ""), 9), metadata.launcher.get("ranks")
    if "mpi_library" not in attributes:
        if launcher := attributes.get("other_launcher"):
            launcher = _CALLED.get(launcher, launcher)
            found.append(
                f"{launcher}, which Quipu did not start, started the process: MPI was not counted"
                if metadata.launcher.get("refused")  # another problem gives the reason
                else f"{launcher}, which Quipu did not start, started the process: MPI was not counted. Give the "
                "launcher to quipu run, or call it by its name without changing PATH"
            )
    elif attributes.get("spawned") != "1" and size and isinstance(launched, int) and 0 < launched < size:
        found.append(
            f"MPI reports {size} ranks, but Quipu started {launched}: the other ranks are not in this run. "
            "Write quipu run before the launcher, not after it"
        )
    return tuple(found)


def _replaced(processes: Iterable[RankedProcess]) -> set[int]:
    """Return id() of the profiles of programs that called exec: another profile of the process has a higher stage."""
    latest: dict[tuple[str, int], ProcessProfile] = {}
    for process in processes:
        key = process.host, process.profile.pid
        known = latest.setdefault(key, process.profile)
        if process.profile.stage > known.stage:
            latest[key] = process.profile
    kept = {id(profile) for profile in latest.values()}
    return {id(process.profile) for process in processes} - kept


def _numbers(processes: Iterable[RankedProcess]) -> list[int]:
    return [process.rank for process in processes]


def _named(processes: Sequence[RankedProcess]) -> str:
    """Return the numbers and programs of processes, such as "process 4711 (app)"."""
    pids = sorted({process.profile.pid for process in processes})
    programs = sorted({Path(process.profile.attributes.get("program", "")).name for process in processes} - {""})
    numbers = ", ".join(map(str, pids[:_MOST_NAMED])) + (" …" if len(pids) > _MOST_NAMED else "")
    names = f" ({', '.join(programs[:_MOST_NAMED])})" if programs else ""
    return f"{'process' if len(pids) == 1 else 'processes'} {numbers}{names}"


def _of_early_end(text: str, processes: Sequence[RankedProcess]) -> str:
    """Return the second part of a problem about an early end: the processes, and the state of their measurements.

    text: the first part; other problems begin with ":" and have no second part.
    """
    return "" if text.startswith(":") else f", {_named(processes)}: {_until_then(_numbers(processes))}"


def _forked_after_init(processes: Iterable[RankedProcess]) -> set[int]:
    """Return id() of the profiles of processes that were forked by a process with MPI.

    They inherit the MPI state of their parent, but are no ranks that must call MPI_Finalize.
    """
    ranks = {(process.host, process.profile.pid): process.profile for process in processes}
    found = set()
    for process in processes:
        parent = whole_number(process.profile.attributes.get("forked_from", ""))
        of = None if parent is None else ranks.get((process.host, parent))
        if of is not None and of is not process.profile and "mpi_library" in of.attributes:
            found.add(id(process.profile))
    return found


def _finalized(profile: ProcessProfile) -> bool:
    """Return whether the process called MPI_Finalize, or never initialized MPI."""
    return "mpi_library" not in profile.attributes or profile.attributes.get("mpi_finalized") == "1"


def _until_then(ranks: list[int]) -> str:
    if len(set(ranks)) == 1:
        return "the results contain its counts until then"
    return "the results contain their counts until then"


def _ranks(ranks: list[int]) -> str:
    return f"rank {ranks[0]}" if len(set(ranks)) == 1 else f"ranks {ranges_text(ranks)}"
