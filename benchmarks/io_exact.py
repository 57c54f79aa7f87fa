# SPDX-License-Identifier: Apache-2.0
"""Check that reads and writes of files are counted exactly, by comparison with strace.

    make bench-io_exact
    benchmarks/io_exact.py --own NAME COMMAND FOLDER     # adds a program, and the folder in which it runs

Six programs (programs/files/) in C, C++, Fortran and Python, one of them with MPI-IO and several ranks, run twice:
under `strace -f`, built without the pass and without Quipu, and with `quipu run --files`. The benchmark compares, for
each group of files in the working folder: the number of system calls that read and write regular files, their bytes,
and the number of opened files.

The last line is one JSON object: `io_exact`, whether all of these are equal; `differences`, the numbers that differ, of
strace first; `seconds`, the times of the runs plain, measured and under strace.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quipu.agent.campaign.repetition import LaunchOptions
from quipu.agent.campaign.repetition import run as measure
from quipu.agent.installation import native_file

PROGRAMS = Path(__file__).resolve().parent / "programs" / "files"
METRICS = ("file_reads", "file_writes", "file_bytes_read", "file_bytes_written", "files_opened")
CALLS = {
    **dict.fromkeys(("read", "pread64", "readv", "preadv", "preadv2"), (0, 2)),
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), (1, 3)),
}
"""The metrics of a system call: calls and bytes."""
COPIES = {"sendfile": (1, 0), "copy_file_range": (0, 1)}
"""The descriptors that a system call reads from and writes to."""
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\((\d+)<([^>]*)>.*= (-?\d+)")
_DESCRIPTOR = re.compile(r"\d+<([^>]*)>")
_OPEN = re.compile(r"^(?:\d+ +)?(?:openat|open|creat)\(.* = \d+<([^>]*)>$")
_UNFINISHED = re.compile(r"^(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
Counts = dict[str, list[int]]


@dataclass(frozen=True)
class Program:
    """A program: its compiler (none for a script) and its launch command."""

    name: str
    source: str
    compiler: str = ""
    options: tuple[str, ...] = ()
    ranks: int = 0

    def build(self, folder: Path, plain: bool) -> tuple[str, ...]:
        """Build the program in a folder; return the command that launches it."""
        source = PROGRAMS / self.source
        launch = ("mpirun", "--oversubscribe", "-n", str(self.ranks)) if self.ranks else ()
        if self.ranks and os.geteuid() == 0:
            launch = ("mpirun", "--allow-run-as-root", *launch[1:])
        if not self.compiler:
            return (*launch, sys.executable, str(source))
        built = folder / self.name
        off = ("--quipu-off",) if plain else ()
        subprocess.run(
            [native_file(self.compiler), *off, *self.options, source, "-o", built],
            check=True,
            stderr=subprocess.PIPE,
        )
        return (*launch, str(built))


ALL = (
    Program("stdio", "stdio.c", "quipu-cc", ("-O2",)),
    Program("posix", "posix.c", "quipu-cc", ("-O2",)),
    Program("streams", "streams.cpp", "quipu-c++", ("-O2",)),
    Program("records", "records.f90", "quipu-fc", ("-O1",)),
    Program("text", "text.py"),
    Program("collective", "collective.c", "quipu-mpicc", ("-O2",), 3),
)


def group(path: str, folder: Path) -> str | None:
    """Return the group of a file of the working folder, None for another file."""
    if not path.startswith(f"{folder}/"):
        return None
    return re.sub(r"\d+", "#", path[len(str(folder)) + 1 :].removesuffix(" (deleted)"))


def lines_of(trace: Path) -> list[str]:
    """Return the calls of a trace; calls that others interrupted are joined."""
    open_calls: dict[str, str] = {}
    lines = []
    for line in trace.read_text(encoding="utf-8", errors="replace").splitlines():
        if found := _UNFINISHED.match(line):
            open_calls[found[1]] = found[2]
        elif found := _RESUMED.match(line):
            lines.append(f"{found[1]} {open_calls.pop(found[1], '')}{found[2]}")
        else:
            lines.append(line)
    return lines


def traced(command: Sequence[str], folder: Path, environment: Mapping[str, str] = os.environ) -> Counts:
    """Return the file accesses of a command in its folder, according to strace."""
    trace = folder.with_suffix(".strace")
    calls = ",".join((*CALLS, *COPIES, "openat", "open", "creat"))
    strace = ["strace", "-f", "-y", "-e", f"trace={calls}", "-e", "signal=none", "-o", str(trace)]
    subprocess.run([*strace, *command], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    counts: Counts = defaultdict(lambda: [0] * len(METRICS))
    for line in lines_of(trace):
        if (found := _CALL.match(line)) and found[1] in COPIES:
            places = _DESCRIPTOR.findall(line)
            for call, place in enumerate(COPIES[found[1]]):
                if name := group(places[place], folder):
                    counts[name][call] += 1
                    counts[name][call + 2] += max(0, int(found[4]))
        elif found and found[1] in CALLS and (name := group(found[3], folder)):
            call, size = CALLS[found[1]]
            counts[name][call] += 1
            counts[name][size] += max(0, int(found[4]))
        elif (found := _OPEN.match(line)) and (name := group(found[1], folder)) and not Path(found[1]).is_dir():
            counts[name][4] += 1
    return dict(counts)


def counted(command: Sequence[str], folder: Path, python: bool) -> Counts:
    """Return the file accesses of a command in its folder, according to Quipu."""
    options = LaunchOptions(files=True, python=python, folder=folder, say=lambda text: None)
    archive = measure(command, {}, None, folder.with_suffix(".runs"), options)
    counts: Counts = defaultdict(lambda: [0] * len(METRICS))
    for path in range(len(archive.tree)):
        region = archive.tree.region_of(path)
        if region.name.startswith("file:") and not region.display.startswith(("(", "/", "modules of")):
            for number, metric in enumerate(METRICS):
                counts[region.display][number] += int(archive.statistics[metric].sum[path])
    return {name: row for name, row in counts.items() if any(row)}


def compare(program: Program, folder: Path) -> dict[str, Any]:
    """Return the differences per group of files (strace, then Quipu), and the times of both runs."""
    plain, own = folder / f"{program.name}-plain", folder / f"{program.name}-own"
    rows, seconds = [], []
    for where, is_plain in ((plain, True), (own, False)):
        where.mkdir()
        build = folder / f"{where.name}.build"
        build.mkdir()
        command = program.build(build, is_plain)
        began = time.monotonic()
        rows.append(traced(command, where) if is_plain else counted(command, where, python=not program.compiler))
        seconds.append(round(time.monotonic() - began, 2))
    names = sorted({*rows[0], *rows[1]})
    nothing = [0] * len(METRICS)
    differences = {
        name: [rows[0].get(name, nothing), rows[1].get(name, nothing)]
        for name in names
        if rows[0].get(name) != rows[1].get(name)
    }
    total = [sum(column) for column in zip(*rows[0].values(), strict=True)]
    return {"groups": len(names), "strace": total, "differences": differences, "seconds": seconds}


def results(names: Sequence[str] = ()) -> dict[str, Any]:
    """Return the comparison of all programs, for `benchmarks/resources.py`."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in ALL:
            if not names or program.name in names:
                rows[program.name] = compare(program, Path(folder).resolve())
                print(f"{program.name:11} {rows[program.name]}", flush=True)
    return {
        "io_exact": all(not row["differences"] for row in rows.values()),
        "io_programs": len(rows),
        "io": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", default="", help="names of the programs, with commas between them")
    parser.add_argument("--own", nargs=3, metavar=("NAME", "COMMAND", "FOLDER"), help="one more program")
    options = parser.parse_args()
    if options.own:
        name, command, where = options.own
        words, folder = shlex.split(command), Path(where).resolve()
        rows = [traced(words, folder), counted(words, folder, python=False)]
        print(json.dumps({"program": name, "io_exact": rows[0] == rows[1], "strace": rows[0], "quipu": rows[1]}))
        return
    print(json.dumps(results([name for name in options.programs.split(",") if name])))


if __name__ == "__main__":
    main()
