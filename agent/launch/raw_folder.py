# SPDX-License-Identifier: Apache-2.0
"""The raw folder of a run: files of the measured processes, of quipu-exec, of the node agents and of `quipu run`.

The merge makes the archive of the run from the raw folder, and then deletes the folder.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from quipu.modeling.documents import Count, typed
from quipu.modeling.errors import FormatError
from quipu.modeling.parallel import ALONE, Workers

from ..archive.metadata import NodeFacts, RunMetadata
from ..archive.run_json import LAUNCH_FORMAT, from_json, read_json, to_json, write_json
from ..profile.ranks import split_ranks, without_nodes
from ..profile.reader import ProcessProfile, read_profile

PREFIX = ".raw-"
LAUNCH_FILE = "launch.json"
_BATCH = 256  # profiles that a worker process reads in one task
ALIVE = "alive-"
_NODE_WAIT = 2.0  # seconds to wait for the last writes of the node agents


@dataclass(frozen=True)
class RankFile:
    """The record of a rank (rank-<rank>.json), which quipu-exec writes before it starts the program.

    affinity: numbers of the CPUs that the rank may use. job: number (from 1) of the launcher that the launched command
    itself started (nested.py); 0 if `quipu run` started the rank.
    """

    rank: Count
    pid: Count
    host: str
    affinity: tuple[Annotated[int, msgspec.Meta(ge=0, lt=1 << 20)], ...] = ()
    program: str = ""
    job: Count = 0


@dataclass(frozen=True, eq=False)
class RawFolder:
    """The readable content of a raw folder.

    - profiles: the profiles without their call paths, which the merge reads later (`read_rank`).
    - nodes: content of node-<host>.json of each node agent.
    - reduced: files with profiles that the ranks combined over MPI.
    - alive: time of the latest check of each node agent (ns of CLOCK_MONOTONIC), by host.
    - problems: texts about unreadable files. damaged: whether one of them is a profile.
    """

    path: Path
    profiles: tuple[ProcessProfile, ...]
    rank_files: tuple[RankFile, ...]
    nodes: tuple[Mapping[str, Any], ...]
    reduced: tuple[Path, ...]
    alive: Mapping[str, int]
    problems: tuple[str, ...]
    damaged: bool


@dataclass(frozen=True)
class Launch:
    """The content of launch.json: the metadata of a run before its end, and the launching process (`quipu run`)."""

    metadata: RunMetadata
    agent_pid: int = 0
    agent_host: str = ""

    @property
    def alive(self) -> bool:
        """Return whether the launching process is still running on this host."""
        if self.agent_host != socket.gethostname():
            return False
        return process_exists(self.agent_pid)


def process_exists(pid: int) -> bool:
    """Return whether a process with this id is running on this host."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except OverflowError:
        return False
    return True


def still_runs(rank: RankFile, raw: Path) -> bool:
    """Return whether the process of a rank is running on this host and writes to this raw folder.

    Another process may have the process id meanwhile. Therefore the environment of the process must name this raw
    folder. Its start time would not prove the identity, because the clock may have been set.
    """
    if rank.host != socket.gethostname() or not process_exists(rank.pid):
        return False
    try:
        variables = Path(f"/proc/{rank.pid}/environ").read_bytes().split(b"\0")
    except ProcessLookupError:
        return False
    except OSError:
        return True  # not known: the process belongs to another user, or the system has no /proc
    folders = [entry.partition(b"=")[2] for entry in variables if entry.startswith(b"QUIPU_DIR=")]
    return any(Path(os.fsdecode(folder)).name == raw.name for folder in folders)


def write_launch(raw: Path, metadata: RunMetadata) -> None:
    """Store the metadata of a run in its raw folder, so that `quipu merge` can merge it later."""
    content = to_json(metadata, LAUNCH_FORMAT)
    content["agent_pid"] = os.getpid()
    content["agent_host"] = socket.gethostname()
    write_json(raw / LAUNCH_FILE, content, durable=True)


def read_launch(raw: Path) -> Launch:
    """Read launch.json of a raw folder. Raises FormatError if it is missing or invalid."""
    path = raw / LAUNCH_FILE
    content = read_json(path)
    metadata = from_json(path, content, LAUNCH_FORMAT)
    pid, host = content.get("agent_pid", 0), content.get("agent_host", "")
    if not isinstance(pid, int) or isinstance(pid, bool) or not isinstance(host, str):
        raise FormatError(path, '"agent_pid" should be a number and "agent_host" text')
    return Launch(metadata, pid, host)


def read_raw_folder(raw: Path, workers: Workers = ALONE) -> RawFolder:
    """Read all readable files of a raw folder. Raises FormatError only if the folder itself cannot be read.

    workers: processes that read the profiles.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(raw) if entry.is_file(follow_symlinks=False))
    except OSError as error:
        raise FormatError(raw, f"is not a readable folder: {error.strerror or error}") from error
    problems: list[str] = []
    rank_files: list[RankFile] = []
    nodes: list[Mapping[str, Any]] = []
    found = [raw / name for name in names if name.startswith("profile-") and name.endswith(".quipu")]
    batches = [found[first : first + _BATCH] for first in range(0, len(found), _BATCH)]
    read = [entry for batch in workers.map(_heads, batches) for entry in batch]
    profiles = [entry for entry in read if isinstance(entry, ProcessProfile)]
    problems += [f"{entry}; it was left out" for entry in read if isinstance(entry, str)]
    alive: dict[str, int] = {}
    for name in names:
        try:
            if name.startswith("rank-") and name.endswith(".json"):
                rank_files.append(read_rank_file(raw / name))
            elif name.startswith("node-") and name.endswith(".json"):
                node = read_json(raw / name)
                typed(node, NodeFacts, raw / name)
                nodes.append(node)
            elif name.startswith(ALIVE):
                alive.update(_alive(raw / name))
        except FormatError as error:
            problems.append(f"{error}; it was left out")
    return RawFolder(
        path=raw,
        profiles=tuple(profiles),
        rank_files=tuple(ranks_of_jobs(rank_files)),
        nodes=tuple(nodes),
        reduced=tuple(raw / name for name in names if name.startswith("reduced-") and name.endswith(".quipu")),
        alive=alive,
        problems=tuple(problems),
        damaged=len(profiles) < len(read),
    )


def _heads(paths: list[Path]) -> list[ProcessProfile | str]:
    """Return each profile without its call paths, or an error text for a profile that is not readable.

    The profile of a simulation contains all ranks; the result has one profile per rank.
    """
    result: list[ProcessProfile | str] = []
    for path in paths:
        try:
            profile = read_profile(path, call_paths=False)
            result += map(without_nodes, split_ranks(read_profile(path))) if profile.location_attributes else [profile]
        except FormatError as error:
            result.append(str(error))
    return result


def _alive(path: Path) -> dict[str, int]:
    """Return the time in a file alive-<host>, by host; empty if the file has no valid time. Raises FormatError."""
    try:
        with path.open("rb") as file:
            text = file.read(20)
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
    return {path.name.removeprefix(ALIVE): int(text)} if text.isdigit() else {}


def read_rank_file(path: Path) -> RankFile:
    """Read rank-<rank>.json. Raises FormatError if it is missing or invalid."""
    return typed(read_json(path), RankFile, path)


def ranks_of_jobs(files: Sequence[RankFile]) -> Sequence[RankFile]:
    """Return the ranks of a run. If the command started launchers (jobs), the command itself is not a rank."""
    return [file for file in files if file.job > 0] or files


def ranges_text(numbers: Iterable[int]) -> str:
    """Return numbers as a text of ranges, such as "0-3,7"."""
    pieces: list[list[int]] = []
    for number in sorted(set(numbers)):
        if pieces and number == pieces[-1][1] + 1:
            pieces[-1][1] = number
        else:
            pieces.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pieces)


def wait_for_nodes(
    raw: Path,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until all started node agents have written their last version of node-<host>.json, at most _NODE_WAIT s.

    clock, sleep: in seconds; tests replace them.
    """
    end = clock() + _NODE_WAIT
    while clock() < end:
        begun = {path.stem for path in raw.glob("node-*.log")}
        if all(_has_ended(raw / f"{stem}.json") for stem in begun):
            return
        sleep(0.02)


def _has_ended(path: Path) -> bool:
    try:
        return '"ended": true' in path.read_text(encoding="utf-8", errors="replace")[:200]
    except OSError:
        return False
