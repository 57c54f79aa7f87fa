# SPDX-License-Identifier: Apache-2.0
"""Measure the overhead of count classes (counts of loops): size of programs and archives, time of merges and runs.

    make bench-classes

The examples, generated MPI programs (`quipu generate`) and random C programs are built with the wrappers and run once.
The comparison is the same program with static facts that contain no classes. Two kinds of merges are measured for a
program with about 1800 call paths, alternately with and without classes: of 64 processes without MPI, and of 16 ranks
that reduced their profiles in MPI_Finalize.

The last line is one JSON object:

- `binary_growth` (bound: 1.05): size of the program with classes / without classes, geometric mean over the programs.
- `archive_growth` (bound: 2): size of the archive with the tables of classes / without them, largest of all programs.
- `merge_growth` (bound: 1.2): processor time with classes / without classes (medians), the larger of both kinds of
  merges. `merges` contains both.
- `memory_growth` (bound: 1.2): the same ratio for the peak memory of a process that merges once.
- `run_time_ratio` (bounds: 0.99 and 1.01): 1 if all loaded parts of each program are equal with and without classes
  (`loaded_alike`), so that the run time is equal; otherwise null.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median

from launching import YIELDING

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests" / folder) for folder in ("examples", "native", "shared")]

from example_programs import COMPILED, build, campaign_arguments, campaign_values  # noqa: E402
from quipu.agent.archive.class_tables import COUNTS, PLACES  # noqa: E402
from quipu.agent.archive.metadata import RunMetadata  # noqa: E402
from quipu.agent.archive.run import RunArchive  # noqa: E402
from quipu.agent.installation import native_file  # noqa: E402
from quipu.agent.merge.run import merge_run  # noqa: E402
from quipu.agent.source.functions import SECTION  # noqa: E402
from quipu.agent.source.packed import texts  # noqa: E402
from quipu.mpi_wrap import mpi_library  # noqa: E402
from quipu.mpi_wrap.elf import ALLOCATED, ElfFile  # noqa: E402
from random_programs import random_program  # noqa: E402

GENERATED = (1, 2, 3)
"""Seeds of `quipu generate`."""
RANDOM = (3, 6, 9, 13)
"""Seeds of tests/native/random_programs.py: levels -O3, -O2, -O1, -O1."""
FUNCTIONS, DEPTH = 50, 40
PROCESSES, RANKS, ROUNDS = 64, 16, 9


@dataclass(frozen=True)
class Measured:
    """A program, the program without classes, and its archive."""

    name: str
    program: Path
    without: Path
    archive: Path


def without_classes(program: Path) -> Path:
    """Write the program without classes next to it; the same code packs both."""
    blocks = texts(program, SECTION)
    target = program.with_name(program.name + ".without")
    _pack(program, program, blocks)
    _pack(program, target, [_stripped(block) for block in blocks])
    return target


def _stripped(block: bytes) -> bytes:
    """Return the facts without members that only classes need, and without entries of inlined code."""
    lines = []
    for line in block.splitlines():
        entry = json.loads(line)
        if not entry.get("inlined"):
            kept = {key: entry[key] for key in entry if key not in ("classes", "functions", "counters")}
            lines.append(json.dumps(kept, separators=(",", ":")).encode())
    return b"\n".join(lines) + b"\n"


def _pack(program: Path, target: Path, blocks: list[bytes]) -> None:
    """Copy a program with changed facts."""
    facts = target.with_name(target.name + ".facts")
    packed = [zlib.compress(block) for block in blocks]
    sizes = zip(packed, blocks, strict=True)
    facts.write_bytes(b"".join(struct.pack("<4sII", b"QPZ1", len(own), len(text)) + own for own, text in sizes))
    section = f"{SECTION}={facts}"
    subprocess.run(["objcopy", "--update-section", section, program, target], check=True, capture_output=True)
    facts.unlink()


def loaded(program: Path) -> dict[str, tuple[int, bytes]]:
    """Return address and content of each section that is loaded."""
    with program.open("rb") as file:
        elf = ElfFile(file)
        return {own.name: (own.address, elf.data(own)) for own in elf.sections() if own.flags & ALLOCATED}


def quipu(folder: Path, *words: object) -> None:
    """Run a quipu command. Exits with its messages if it fails."""
    command = [str(Path(sys.executable).with_name("quipu")), *map(str, words)]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **YIELDING}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"classes: {' '.join(command)} ended with exit code {done.returncode}: {done.stderr}")


def measured(name: str, program: Path, command: list[str]) -> Measured:
    """Run a program once and merge its run."""
    quipu(program.parent, "run", "-o", "measured.runs", "--", *command)
    (archive,) = (path for path in (program.parent / "measured.runs").iterdir() if (path / "run.json").exists())
    return Measured(name, program, without_classes(program), archive)


def programs(folder: Path) -> list[Measured]:
    """Build and run all programs."""
    found = []
    for name in COMPILED:
        example = build(name, folder, "MPICC=quipu-mpicc", "MPICXX=quipu-mpic++")
        arguments = campaign_arguments(name, min(campaign_values(name)["n"]))
        found.append(measured(name, example.folder / name, ["mpirun", "-n", "4", f"./{name}", *arguments]))
    for seed in GENERATED:
        target = folder / f"generated{seed}"
        bounds = ("--from", "p=2,n=500", "--to", "p=64,n=4000", "--most-steps", "2e6")
        quipu(folder, "generate", "--functions", "9", "--seed", seed, *bounds, "-o", target)
        subprocess.run(["make", "MPICXX=quipu-mpic++"], cwd=target, check=True, capture_output=True)
        found.append(measured(target.name, target / "benchmark", ["mpirun", "-n", "2", "./benchmark", "500"]))
    for seed in RANDOM:
        target = folder / f"random{seed}"
        target.mkdir()
        (target / "random.c").write_text(random_program(seed), encoding="utf-8")
        compile_c(target / "random.c", target / "random", f"-O{seed % 4}")
        found.append(measured(target.name, target / "random", ["./random"]))
    return found


def compile_c(source: Path, program: Path, *options: str, wrapper: str = "quipu-cc") -> None:
    """Build a C program with debug information."""
    command: list[str | Path] = [native_file(wrapper), "-g", "-w", *options, source, "-o", program]
    subprocess.run(command, check=True, capture_output=True)


def many_paths(is_mpi: bool) -> str:
    """Return a program of functions with loops and branches that call each other in chains."""
    before, start, end = ("#include <mpi.h>\n", "MPI_Init(&c, &v);", "MPI_Finalize();") if is_mpi else ("", "", "")
    functions = "\n".join(
        f"""static void f{i}(int depth, int n) {{
    double s = 0;
    for (int i = 0; i < n; i++) {{
        s += a[i] * {i + 1};
        if (a[i] > {i} * 0.01)
            s *= 1.5;
        for (int j = 0; j < i; j++)
            a[j] += s * 0.001;
    }}
    for (int i = 1; i < n; i *= 2)
        s -= a[i];
    sink = s;
    if (depth)
        functions[({i} + 7) * (depth + 1) % {FUNCTIONS}](depth - 1, n);
}}"""
        for i in range(FUNCTIONS)
    )
    return f"""{before}static double a[100];
static volatile double sink;
extern void (*const functions[{FUNCTIONS}])(int, int);
{functions}
void (*const functions[{FUNCTIONS}])(int, int) = {{{", ".join(f"f{i}" for i in range(FUNCTIONS))}}};
int main(int c, char **v) {{
    {start}
    for (int i = 0; i < 100; i++)
        a[i] = i * 37 % 100 * 0.01;
    for (int i = 0; i < {FUNCTIONS}; i++)
        functions[i]({DEPTH - 1}, 4 + c);
    {end}
    return 0;
}}
"""


def raw_folder(folder: Path, is_mpi: bool) -> tuple[Path, Path]:
    """Run the program with many call paths; return it and its raw folder."""
    folder.mkdir()
    raw, program = folder / "raw", folder / "many"
    raw.mkdir()
    (folder / "many.c").write_text(many_paths(is_mpi), encoding="utf-8")
    compile_c(folder / "many.c", program, "-O2", wrapper="quipu-mpicc" if is_mpi else "quipu-cc")
    environment = {**os.environ, **YIELDING}
    if is_mpi:
        settings = (f"LD_PRELOAD={mpi_library('mpicc')}", f"QUIPU_DIR={raw}", "QUIPU_MPI_REDUCE=1")
        command = ["mpirun", "-n", str(RANKS), "env", *settings, str(program)]
        subprocess.run(command, check=True, capture_output=True, env=environment)
        if not list(raw.glob("reduced-*")):
            sys.exit("classes: the ranks did not reduce in MPI_Finalize")
    else:
        for rank in range(PROCESSES):
            subprocess.run([program], check=True, env={**environment, "QUIPU_DIR": str(raw), "QUIPU_RANK": str(rank)})
    return program, raw


def merge(raw: Path, folder: Path, ranks: int) -> tuple[float, RunArchive]:
    """Merge once; return the processor time in seconds and the archive."""
    begin = time.process_time()
    archive = merge_run(raw, folder, RunMetadata({"p": ranks}, exit_code=0), keep_raw=True)
    return time.process_time() - begin, archive


MERGE = """import resource, sys
from pathlib import Path
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.merge.run import merge_run
merge_run(Path(sys.argv[1]), Path(sys.argv[2]), RunMetadata({"p": int(sys.argv[3])}, exit_code=0), keep_raw=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_memory(raw: Path, folder: Path, ranks: int) -> int:
    """Return the largest memory (KiB) of a process that merges once."""
    command = [sys.executable, "-c", MERGE, str(raw), str(folder), str(ranks)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def merges(folder: Path, is_mpi: bool) -> dict[str, float]:
    """Return the costs of merges with and without classes."""
    ranks = RANKS if is_mpi else PROCESSES
    program, raw = raw_folder(folder, is_mpi)
    whole = program.with_name("whole")
    shutil.copy2(program, whole)
    less = program.with_name("less")
    shutil.copy2(program, less)
    stripped = without_classes(less)
    shutil.copystat(whole, stripped)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    memory: dict[bool, list[int]] = {True: [], False: []}
    facts: dict[str, float] = {}
    for number in range(-1, ROUNDS):  # the first merge loads libraries
        for classes in (True, False) if number % 2 else (False, True):
            program.unlink()
            shutil.copy2(whole if classes else stripped, program)
            own, archive = merge(raw, folder / "runs", ranks)
            if (archive.classes is not None) != classes:
                sys.exit(f"classes: the archive has {'no ' if classes else ''}classes: {archive.metadata.problems}")
            if classes:
                facts = {"paths": len(archive.tree), **archive_sizes(archive.path)}
            if number >= 0:
                seconds[classes].append(own)
                memory[classes].append(peak_memory(raw, folder / "more", ranks))
    with_classes, without = median(seconds[True]), median(seconds[False])
    return {
        "ranks": ranks,
        **facts,
        "with_s": round(with_classes, 4),
        "without_s": round(without, 4),
        "growth": round(with_classes / without, 3),
        "memory_mib": round(median(memory[True]) / 1024, 1),
        "memory_growth": round(median(memory[True]) / median(memory[False]), 3),
    }


def archive_sizes(archive: Path) -> dict[str, float]:
    """Return the size of an archive (bytes), and its ratio to the size without the tables of classes."""
    files = {path.name: path.stat().st_size for path in archive.iterdir()}
    whole = sum(files.values())
    return {"archive": whole, "archive_growth": round(whole / (whole - files[COUNTS] - files[PLACES]), 3)}


def row(program: Measured) -> dict[str, float | bool]:
    """Return the sizes (bytes) and the loaded sections of a program."""
    sizes = program.program.stat().st_size, program.without.stat().st_size
    return {
        "binary": sizes[0],
        "binary_growth": round(sizes[0] / sizes[1], 4),
        **archive_sizes(program.archive),
        "loaded_alike": loaded(program.program) == loaded(program.without),
    }


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = {program.name: row(program) for program in programs(folder)}
        for kind, own in rows.items():
            print(f"{kind:12} {own}", flush=True)
        merged = {"post_mortem": merges(folder / "alone", False), "reduced": merges(folder / "mpi", True)}
        for kind, seconds in merged.items():
            print(f"{kind:12} {seconds}", flush=True)
    alike = all(own["loaded_alike"] for own in rows.values())
    result = {
        "binary_growth": round(geometric_mean(own["binary_growth"] for own in rows.values()), 4),
        "archive_growth": max(own["archive_growth"] for own in (*rows.values(), *merged.values())),
        "merge_growth": max(own["growth"] for own in merged.values()),
        "memory_growth": max(own["memory_growth"] for own in merged.values()),
        "run_time_ratio": 1.0 if alike else None,
        "loaded_alike": alike,
        "load": round(os.getloadavg()[0], 1),
        "merges": merged,
        "programs": rows,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
