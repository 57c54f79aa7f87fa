# SPDX-License-Identifier: Apache-2.0
"""Programs with planted delays: is the first root cause the planted call path of the planted rank?

    make bench-delays

Each program has one large delay of a known call path on a known rank, a smaller one elsewhere, and work that is the
same everywhere. Amounts and ranks are drawn with a fixed seed. Ranks are simulated, and their computation takes its
effort, so that the profile is the same in every run; programs with threads run natively, as simulated ranks have one.

The last line is one JSON object: `planted_found`, the part of the programs where the first root cause is the planted
call path and rank (bound: 0.95); `conserved_worst`, the largest difference between the measured waiting and the sum of
what is charged and of what is listed as unexplained, relative to the waiting (bound: 0.05); `unexplained_worst`, the
largest part that is unexplained, and `unexplained_median`; `pop_error`, the largest relative error of a load balance
where it was planted (bound: 0.01); `predicted_error`, of the time that ranks lose by waiting and communication at 128
ranks as predicted from 2 to 16, against simulation: median of programs (bound: 0.1), and the worst; and `kinds`, the
part that was found of each kind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from launching import LAUNCH
from quipu.agent.archive.read import read_archive
from quipu.agent.cli.efficiencies import efficiency_view
from quipu.agent.merge.efficiency_times import run_times
from quipu.agent.merge.experiment import find_runs
from quipu.modeling.efficiency import parallel_factors
from quipu.modeling.rates import PathRates, Rates, to_document
from quipu.modeling.root_causes import root_causes
from quipu.modeling.run_times import RunTimes

BIN = Path(sys.executable).parent
RATE = 1e-9  # seconds per instruction
SPEED = 10  # Gflop/s of a simulated host
STEPS = 20
ALL_REDUCE = "MPI_Allreduce(MPI_IN_PLACE, &sink, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);"
HEAD = """
#include <mpi.h>
#include <stdlib.h>
static double sink;
static void __attribute__((noinline)) turn(long n) {
    double sum = 1.0;
    for (long i = 0; i < n; i++) sum = sum * 0.5 + i;
    sink += sum;
}
"""
MAIN = """
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int p, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < %(steps)d; step++) {
        %(body)s
    }
    MPI_Finalize();
    return sink < 0.0;
}
"""


@dataclass(frozen=True)
class Planted:
    """A program: its functions, the body of its steps, and what was planted.

    region, rank: the first root cause. factors: planted efficiencies. slow: the rank whose host is slower, and by which
    factor. threads: it is native, with so many.
    """

    kind: str
    p: int
    functions: tuple[str, ...]
    body: str
    region: str
    rank: int
    factors: dict[str, float] = field(default_factory=dict)
    slow: tuple[int, float] | None = None
    threads: int = 0

    @property
    def source(self) -> str:
        """The program in C."""
        names = [f"static void __attribute__((noinline)) {name}(long n) {{ turn(n); }}\n" for name in self.functions]
        return HEAD + "".join(names) + MAIN % {"steps": STEPS, "body": self.body}


def serial(dice: random.Random, p: int) -> Planted:
    """One rank works alone between two barriers; another is late by less before the first."""
    rank, other = dice.sample(range(p), 2)
    work, alone = dice.randrange(100_000, 300_000), dice.randrange(50_000, 200_000)
    body = f"""even_work({work}); if (rank == {other}) small_delay({alone // 3});
        MPI_Barrier(MPI_COMM_WORLD); if (rank == {rank}) serial_section({alone}); MPI_Barrier(MPI_COMM_WORLD);"""
    return Planted("serial", p, ("even_work", "small_delay", "serial_section"), body, "serial_section", rank)


def linear(dice: random.Random, p: int) -> Planted:
    """Work grows with the rank."""
    work = dice.randrange(100_000, 300_000)
    slope = work // p * dice.randrange(2, 5) // 2
    body = f"even_work({work}); uneven_rows({slope} * rank); {ALL_REDUCE}"
    balance = (work + slope * (p - 1) / 2) / (work + slope * (p - 1))
    return Planted("linear", p, ("even_work", "uneven_rows"), body, "uneven_rows", p - 1, {"load_balance": balance})


def slow(dice: random.Random, p: int) -> Planted:
    """All ranks do the same, one on a slower processor."""
    rank, factor, work = dice.randrange(p), dice.uniform(1.2, 2.0), dice.randrange(100_000, 300_000)
    body = f"big_loop({work}); even_work({work // 4}); {ALL_REDUCE}"
    balance = (p - 1 + factor) / p / factor
    factors = {"load_balance": balance, "work_balance": 1.0}
    return Planted("slow", p, ("even_work", "big_loop"), body, "big_loop", rank, factors, (rank, factor))


def pipeline(dice: random.Random, p: int) -> Planted:
    """Items go through the ranks, one of which needs longer for its stage."""
    rank, work = dice.randrange(p), dice.randrange(50_000, 100_000)
    extra = work * dice.randrange(4, 12) // 8
    body = f"""static char item[100000];
        if (rank > 0) MPI_Recv(item, sizeof item, MPI_CHAR, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        stage({work} + (rank == {rank} ? {extra} : 0));
        if (rank + 1 < p) MPI_Send(item, sizeof item, MPI_CHAR, rank + 1, 0, MPI_COMM_WORLD);"""
    return Planted("pipeline", p, ("stage",), body, "stage", rank)


def master(dice: random.Random, p: int) -> Planted:
    """Workers wait for the master, who prepares one task after the other."""
    task = dice.randrange(50_000, 200_000)
    prepare = task * dice.randrange(8, 16) // (8 * (p - 1))
    body = f"""if (rank == 0)
            for (int worker = 1; worker < p; worker++) {{
                prepare({prepare}); MPI_Send(&step, 1, MPI_INT, worker, 1, MPI_COMM_WORLD);
            }}
        else {{ MPI_Recv(&step, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); do_task({task} / 4); }}"""
    return Planted("master", p, ("prepare", "do_task"), body, "prepare", 0)


def broadcast(dice: random.Random, p: int) -> Planted:
    """The root of a broadcast sorts before it; a small imbalance has another end."""
    root, other = dice.sample(range(p), 2)
    work, keys = dice.randrange(100_000, 300_000), dice.randrange(50_000, 200_000)
    body = f"""if (rank == {root}) sort_keys({keys}); static char data[10000];
        MPI_Bcast(data, sizeof data, MPI_CHAR, {root}, MPI_COMM_WORLD);
        even_work({work}); if (rank == {other}) small_delay({keys // 3});
        {ALL_REDUCE}"""
    return Planted("broadcast", p, ("sort_keys", "even_work", "small_delay"), body, "sort_keys", root)


def openmp(dice: random.Random, p: int) -> Planted:
    """One item of a loop with a dynamic schedule is as long as all others together; the last one to start."""
    item = dice.randrange(3_000_000, 6_000_000)  # long enough for the scheduler of the machine
    body = f"""
        #pragma omp parallel for schedule(dynamic) num_threads(2)
        for (int i = 0; i < 4; i++) {{ if (i == 3) long_item({3 * item}); else short_item({item}); }}
        even_work({item // 4});"""
    return Planted("openmp", p, ("even_work", "long_item", "short_item"), body, "long_item", 0, threads=2)


def halo(dice: random.Random, p: int) -> Planted:
    """Neighbours on a ring exchange messages that do not block; a rank has more cells."""
    rank, cells = dice.randrange(p), dice.randrange(100_000, 300_000)
    extra = cells * dice.randrange(2, 8) // 8
    body = f"""static char out[2000], in[2][2000];
        MPI_Request wait[4];
        int left = (rank + p - 1) % p, right = (rank + 1) % p;
        MPI_Irecv(in[0], sizeof out, MPI_CHAR, left, 0, MPI_COMM_WORLD, wait);
        MPI_Irecv(in[1], sizeof out, MPI_CHAR, right, 1, MPI_COMM_WORLD, wait + 1);
        MPI_Isend(out, sizeof out, MPI_CHAR, right, 0, MPI_COMM_WORLD, wait + 2);
        MPI_Isend(out, sizeof out, MPI_CHAR, left, 1, MPI_COMM_WORLD, wait + 3);
        MPI_Waitall(4, wait, MPI_STATUSES_IGNORE); update_cells({cells} + (rank == {rank} ? {extra} : 0));"""
    return Planted("halo", p, ("update_cells",), body, "update_cells", rank)


def gather(dice: random.Random, p: int) -> Planted:
    """The root collects, and waits for a leaf that is late; then the root works while the others wait, for less."""
    rank, work = dice.randrange(1, p), dice.randrange(100_000, 300_000)
    late = work * dice.randrange(2 * p, 4 * p) // 4
    body = f"""even_work({work}); if (rank == {rank}) late_leaf({late}); static int all[64];
        MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD); if (rank == 0) write_out({work // 8});
        MPI_Bcast(all, 64, MPI_INT, 0, MPI_COMM_WORLD);"""
    return Planted("gather", p, ("even_work", "late_leaf", "write_out"), body, "late_leaf", rank)


def two(dice: random.Random, p: int) -> Planted:
    """Two ranks are late at the same barrier in turn, one of them by more; a third has less to do."""
    first, second, idle = dice.sample(range(p), 3)
    work = dice.randrange(100_000, 300_000)
    body = f"""if (rank != {idle}) even_work({work});
        if (step % 2 == 0 && rank == {first}) long_delay({2 * work});
        if (step % 2 && rank == {second}) short_delay({work});
        MPI_Barrier(MPI_COMM_WORLD);"""
    return Planted("two", p, ("even_work", "long_delay", "short_delay"), body, "long_delay", first)


PREDICTED: tuple[Callable[[random.Random, int], Planted], ...] = (serial, linear, master, broadcast, gather)
"""Kinds whose delays are the same for any number of ranks, from two on."""
MEASURED, TARGET = (2, 4, 8, 16), 128
KINDS: tuple[Callable[[random.Random, int], Planted], ...] = (
    *(serial, linear, slow, pipeline, master, broadcast, openmp),
    *(halo, gather, two),
)


def platform(planted: Planted) -> str:
    """Return a platform with one host for each rank, of which one may be slower."""
    speeds = [float(SPEED)] * planted.p
    if planted.slow is not None:
        speeds[planted.slow[0]] = SPEED / planted.slow[1]
    hosts = "".join(f'<host id="node-{at}" speed="{speed:.9f}Gf"/>' for at, speed in enumerate(speeds))
    routes = "".join(
        f'<route src="node-{one}" dst="node-{other}"><link_ctn id="link"/></route>'
        for one in range(planted.p)
        for other in range(one + 1, planted.p)
    )
    link = '<link id="link" bandwidth="12.5GBps" latency="0.5us" sharing_policy="FATPIPE"/>'
    return f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="all" routing="Full">{hosts}{link}{routes}</zone></platform>
"""


def build(planted: Planted, folder: Path) -> None:
    """Write and build a program, and all that its runs need."""
    folder.mkdir()
    (folder / "app.c").write_text(planted.source)
    rates = Rates(("instructions",), PathRates((), (RATE,), 1.0, 0.0, 1, "all"))
    (folder / "app.rates").write_text(json.dumps(to_document(rates)))
    compiler, flags = ("quipu-mpicc", ["-fopenmp"]) if planted.threads else ("quipu-smpicc", [])
    subprocess.run([BIN / compiler, "-O1", "-g", *flags, "app.c", "-o", "app"], cwd=folder, check=True)


def run(planted: Planted, folder: Path, runs: str = "runs") -> None:
    """Run a program, simulated by effort unless it has threads."""
    ranks = str(planted.p)
    command, how = ["mpirun", "-n", ranks, "./app"], ["--mpi-wait", "all"]
    if not planted.threads:
        (folder / "platform.xml").write_text(platform(planted))
        (folder / "hosts").write_text("".join(f"node-{rank}\n" for rank in range(planted.p)))
        options = ["-platform", "platform.xml", "-hostfile", "hosts", f"--cfg=smpi/host-speed:{SPEED}Gf"]
        command, how = ["smpirun", "-np", ranks, *options, "./app"], ["--compute", "effort", "--rates", "app.rates"]
    words = [str(BIN / "quipu"), "run", *how, "--param", f"p={ranks}", "-o", runs, "--", *command]
    variables = {**os.environ, **LAUNCH, "OMP_NUM_THREADS": "2"}
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{planted.kind}: {done.stdout}{done.stderr}")


def measured(planted: Planted, folder: Path) -> RunTimes:
    """Build and run a program; return its times."""
    build(planted, folder)
    run(planted, folder)
    archive = read_archive(find_runs(folder / "runs")[0].path)
    return run_times(archive, archive.tree)


def predicted(planted: Planted, folder: Path) -> float:
    """Return the relative error of the waiting that is predicted at eight times the ranks, against simulation."""
    build(planted, folder)
    for p in MEASURED:
        run(replace(planted, p=p), folder)
    run(replace(planted, p=TARGET), folder, "target")
    lost = []
    for column in (
        efficiency_view(folder / "runs", {"p": float(TARGET)}).columns[-1],
        efficiency_view(folder / "target").columns[-1],
    ):
        lost.append(column.elapsed * (1.0 - column.factors.of("parallel")[0]))
    return abs(lost[0] / lost[1] - 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=30, help="how many programs")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    found: dict[str, list[bool]] = {}
    conserved, unexplained, errors = [], [], []
    with tempfile.TemporaryDirectory() as name:
        for number in range(arguments.programs):
            kind = KINDS[number % len(KINDS)]
            planted = kind(dice, 1 if kind is openmp else dice.choice((4, 6, 8)))
            times = measured(planted, Path(name) / str(number))
            causes = root_causes(times)
            assert causes is not None
            path, rank, _ = causes.ranked[0] if causes.ranked else (-1, -1, 0.0)
            names = [times.tree.name(step) for step in times.tree.ancestry(path)] if path >= 0 else []
            right = planted.region in names and planted.rank == rank
            found.setdefault(planted.kind, []).append(right)
            whole = causes.waiting
            conserved.append(abs(float(causes.delay_caused.sum()) + causes.unexplained - whole) / whole)
            unexplained.append(causes.unexplained / whole)
            factors = parallel_factors(times)
            errors += [abs(factors.of(key)[0] / value - 1.0) for key, value in planted.factors.items()]
            says = f"{'->'.join(names)} on rank {rank}"
            mark = "ok   " if right else "WRONG"
            print(
                f"{mark} {planted.kind:10} p={planted.p}  {planted.region} on rank {planted.rank}: {says}, "
                f"{unexplained[-1]:.0%} unexplained",
                flush=True,
            )
        errors_there = {}
        for kind in PREDICTED:
            planted = kind(dice, MEASURED[0])
            errors_there[planted.kind] = predicted(planted, Path(name) / f"predicted-{planted.kind}")
            print(f"{planted.kind:10} predicted at p={TARGET}: {errors_there[planted.kind]:.1%} off", flush=True)
    everything = [right for own in found.values() for right in own]
    result = {
        "planted_found": round(statistics.fmean(everything), 4),
        "conserved_worst": round(max(conserved), 6),
        "unexplained_worst": round(max(unexplained), 4),
        "unexplained_median": round(statistics.median(unexplained), 4),
        "pop_error": round(max(errors), 6),
        "predicted_error": round(statistics.median(errors_there.values()), 4),
        "predicted_worst": round(max(errors_there.values()), 4),
        "programs": len(everything),
        "kinds": {kind: round(statistics.fmean(own), 4) for kind, own in found.items()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
