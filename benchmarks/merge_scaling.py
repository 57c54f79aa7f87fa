# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of merging many ranks to one archive, as a function of ranks and call paths.

    make bench-merge_scaling

All profiles have 10 metrics per call path, and call trees that differ slightly between ranks. Ways of merging:

- post mortem: profile files are merged by two processes (`quipu merge --jobs 2`), and by one process.
- over MPI, as in MPI_Finalize, by the code of the PMPI library, with three kinds of ranks: synthetic ranks with
  separate stacks in one thread (merge_scaling_fibers.c), which adds no other cost; ranks of SimGrid SMPI, including the
  cost of the simulator (left out without smpirun); and real processes of mpirun.

From the time of a simulation, the benchmark subtracts the time of a run that does everything except the reduction.

The last line is one JSON object:

- `seconds` (bound: 60), `peak_gb` (bound: 4): largest time and memory of all ways at 4096 ranks × 2000 call paths.
- `growth_exponents`: exponent of the processor time as a function of ranks × call paths (1: proportional), by way.
  `growth_exponent`: the larger exponent of post mortem and reduction.
- `of_one_rank`: processor seconds of a rank in the reduction at 4096 × 2000, mean and largest. All ranks work at the
  same time in a real job.
- `workers`: seconds of one and of two processes post mortem.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from launching import LAUNCH

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "agent"))

from profile_writer import Node, Profile  # noqa: E402

METRICS = 10
VARIANTS = 32
JOBS = 2
SIZES = ((256, 2000), (512, 2000), (1024, 500), (1024, 2000), (2048, 2000), (4096, 500), (4096, 2000))


@dataclass(frozen=True)
class Cost:
    """Wall-clock and processor seconds, and the largest total memory of all processes.

    most: processor seconds of the rank with most, 0 if unknown.
    """

    ranks: int
    paths: int
    seconds: float
    cpu: float
    peak_gb: float
    most: float = 0.0


@dataclass
class Written(Profile):
    """A profile whose call paths are encoded once for several ranks."""

    packed: bytes = b""

    def _nodes(self) -> bytes:
        return self.packed


def profile(paths: int, variant: int) -> Written:
    """Return a profile of one rank; every 40th call path may be missing.

    Half of the counts are equal on all ranks.
    """
    shape, own = np.random.default_rng(1), np.random.default_rng(variant + 2)
    regions = paths // 4 + 1
    above = [0] + [int(shape.integers(0, path)) for path in range(1, paths)]
    names = shape.integers(1, regions + 1, paths).tolist()
    numbers = {0: 1}
    nodes = [Node(1, 0, 0, (0,) * METRICS)]
    for path in range(1, paths):
        if above[path] not in numbers or (path % 40 == 0 and own.integers(2)):
            continue
        numbers[path] = len(nodes) + 1
        values = [int(own.integers(1000, 1_000_000)) if m % 2 else 1000 + 7 * path + m for m in range(METRICS)]
        nodes.append(Node(numbers[path], numbers[above[path]], names[path], values))
    table = [
        f"metric{m}\ts\tcost\tsum\ta time" if m == 1 else f"metric{m}\t1\teffort\tsum\ta count" for m in range(METRICS)
    ]
    texts = {
        i: f"_ZN5solver9function{i}Ev\x1fsolver::function{i}()\x1fsrc/solver.cpp\x1f{i}\x1f0"
        for i in range(1, regions + 1)
    }
    whole = Written(nodes=nodes, regions=texts, metrics=table, node_size=64 + 8 * METRICS, chunk_size=1 << 16)
    return replace(whole, nodes=(), packed=Profile._nodes(whole))


def write_profiles(folder: Path, ranks: int, paths: int) -> None:
    """Fill a raw folder."""
    variants = [profile(paths, variant) for variant in range(min(VARIANTS, ranks))]
    for rank in range(ranks):
        said = {"rank": str(rank), "ranks": str(ranks), "host": "n1", "mpi_library": "MPI", "mpi_finalized": "1"}
        variant = variants[rank * 7 % len(variants)]
        variant.attributes, variant.pid = said, 1000 + rank
        variant.write(folder)


def merge(raw: Path, destination: Path, count: int) -> None:
    """Merge in this process and print its costs as JSON."""
    from quipu.agent.archive.metadata import RunMetadata
    from quipu.agent.merge.run import merge_run
    from quipu.modeling.parallel import jobs

    begin = time.perf_counter()
    with jobs(str(count)) as workers:
        assert workers is not None
        merge_run(raw, destination, RunMetadata({"p": 1}, exit_code=0), keep_raw=True, workers=workers)
    seconds = time.perf_counter() - begin
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    peak = (own.ru_maxrss + count * children.ru_maxrss) / (1 << 20)  # of each child as much as of the largest child
    print(json.dumps([seconds, cpu, peak]))


def post_mortem(folder: Path, ranks: int, paths: int, jobs: int = JOBS) -> Cost:
    """Write profiles, merge them in a fresh process, remove them."""
    raw = folder / "raw"
    raw.mkdir()
    write_profiles(raw, ranks, paths)
    command = [sys.executable, __file__, "--merge", str(raw), str(folder / "runs"), str(jobs)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    shutil.rmtree(raw)
    seconds, cpu, peak = json.loads(result.stdout)
    return Cost(ranks, paths, seconds, cpu, peak)


def build(compiler: str, program: Path, *more: str) -> Path:
    """Compile the synthetic ranks with the reduction of the PMPI library."""
    native, runtime, here = ROOT / "mpi_wrap/native/reduction", ROOT / "agent" / "runtime", Path(__file__).parent
    sources = [str(Path(__file__).with_suffix(".c")), *more, *(str(path) for path in sorted(native.glob("*.c")))]
    command = [compiler, "-O2", f"-I{here}", f"-I{native}", f"-I{runtime}", *sources, "-lm", "-o", str(program)]
    subprocess.run(command, check=True, env={**os.environ, "SMPI_NO_UNDEFINED_CHECK": "1"})
    return program


def timed(command: list[str], ranks: int, paths: int) -> tuple[Cost, list[float]]:
    """Run a command; return its costs and the numbers that it printed."""
    begin = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **LAUNCH}) as process:
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with {process.returncode}: {text}")
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(ranks, paths, seconds, cpu or used.ru_utime, used.ru_maxrss / (1 << 20)), [
        float(word) for word in text.split()
    ]


def reduced(program: Path, folder: Path, ranks: int, paths: int) -> Cost:
    """Reduce over ranks of one thread: time of the reduction alone, memory with the profiles of all ranks."""
    command = [str(program), str(ranks), str(paths), str(METRICS), str(folder), "256" if ranks > 256 else "0"]
    whole, (seconds, cpu, most) = timed(command, ranks, paths)
    for path in folder.glob("reduced-*"):
        path.unlink()
    return replace(whole, seconds=seconds, cpu=cpu, most=most)


def simulated(program: Path, folder: Path, ranks: int, paths: int) -> Cost:
    """Reduce over simulated ranks; the time of a run that only makes the snapshots is subtracted."""
    platform, hosts = folder / "platform.xml", folder / "hosts"
    platform.write_text(
        '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'
        f'<cluster id="c" prefix="n-" suffix="" radical="0-{ranks - 1}" speed="10Gf" bw="10GBps" lat="1us"/>'
        "</platform>\n"
    )
    hosts.write_text("".join(f"n-{rank}\n" for rank in range(ranks)))
    settings = ("smpi/privatization:no", "contexts/stack-size:256", "smpi/send-is-detached-thresh:0")
    command = ["smpirun", "-np", str(ranks), "-platform", str(platform), "-hostfile", str(hosts)]
    command += [*(f"--cfg={setting}" for setting in settings), "--log=root.thres:error"]
    command += [str(program), str(paths), str(METRICS), str(folder), "256"]
    whole, _ = timed(command, ranks, paths)
    without, _ = timed([*command, "dry"], ranks, paths)
    for path in folder.glob("reduced-*"):
        path.unlink()
    return replace(whole, seconds=max(whole.seconds - without.seconds, 0.0), cpu=max(whole.cpu - without.cpu, 1e-3))


def real(program: Path, folder: Path, ranks: int, paths: int) -> dict[str, float]:
    """Reduce over real ranks to statistics and to columns; seconds as rank 0 sees them."""
    result: dict[str, float] = {"ranks": ranks, "paths": paths}
    for name, limit in (("statistics", "0"), ("columns", "1000000")):
        command = ["mpirun", "-n", str(ranks), str(program), str(paths), str(METRICS), str(folder), limit]
        result[name] = timed(command, ranks, paths)[1][0]
    return result


def exponent(costs: list[Cost]) -> float:
    """Return the slope of processor time over ranks x call paths, both logarithmic."""
    sizes = np.log([cost.ranks * cost.paths for cost in costs])
    return float(np.polyfit(sizes, np.log([cost.cpu for cost in costs]), 1)[0])


def show(kind: str, cost: Cost) -> Cost:
    """Print one measurement."""
    print(
        f"{kind:12} {cost.ranks:5} ranks x {cost.paths} call paths: {cost.seconds:7.2f} s, "
        f"processor {cost.cpu:7.2f} s, {cost.peak_gb:5.2f} GB",
        flush=True,
    )
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--merge", nargs=3, metavar=("RAW", "DIR", "JOBS"), help="merge, and print the cost")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    arguments = parser.parse_args()
    if arguments.merge:
        raw, destination, jobs = arguments.merge
        merge(Path(raw), Path(destination), int(jobs))
        return
    sizes = SIZES[:2] if arguments.quick else SIZES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        merged = [show("post mortem", post_mortem(folder, *size)) for size in sizes]
        compared = merged[0 if arguments.quick else 3]
        single = show("one worker", post_mortem(folder, compared.ranks, compared.paths, jobs=1))
        fibers = str(Path(__file__).with_name("merge_scaling_fibers.c"))
        program = build("mpicc", folder / "fibers", "-DQUIPU_FIBERS", fibers)
        small = [(64, 2000), (256, 2000)] if arguments.quick else [(64, 2000), (256, 2000), (1024, 500), (1024, 2000)]
        larger = [] if arguments.quick else [(4096, 500), (4096, 2000)]
        native = [show("reduced", reduced(program, folder, *size)) for size in [*small, *larger]]
        simulations = []
        if shutil.which("smpirun"):
            program = build("smpicc", folder / "simulated")
            simulations = [show("simulated", simulated(program, folder, *size)) for size in [*small, *larger[1:]]]
        program = build("mpicc", folder / "real")
        processes = [real(program, folder, ranks, 2000) for ranks in (2, 4, 8)]
        for row in processes:
            print(
                f"real         {row['ranks']:5} ranks x {row['paths']} call paths: "
                f"statistics {row['statistics']:.3f} s, columns {row['columns']:.3f} s",
                flush=True,
            )
    ways = {"post_mortem": merged, "reduced": native, "simulated": simulations}
    growths = {name: round(exponent(costs), 3) for name, costs in ways.items() if len(costs) > 1}
    largest = [costs[-1] for costs in ways.values() if costs]
    last = native[-1]
    print(
        json.dumps(
            {
                "seconds": round(max(cost.seconds for cost in largest), 2),
                "peak_gb": round(max(cost.peak_gb for cost in largest), 2),
                "growth_exponent": max(growths["post_mortem"], growths["reduced"]),
                "growth_exponents": growths,
                "of_one_rank": {"mean": round(last.cpu / last.ranks, 5), "largest": round(last.most, 5)},
                "workers": {"ranks": single.ranks, "1": single.seconds, str(JOBS): compared.seconds},
                **{name: [asdict(cost) for cost in costs] for name, costs in ways.items()},
                "real": processes,
            },
        )
    )


if __name__ == "__main__":
    main()
