# SPDX-License-Identifier: Apache-2.0
"""Plant delays in programs, and check whether the first root cause is the planted call path and rank.

    make bench-delays

Each program has one large delay of a known call path on a known rank, a smaller delay elsewhere, and equal work
everywhere else. A fixed seed determines the amounts and ranks. Ranks are simulated, and the time of computation is
effort × rate, so the profile is the same in every run. Programs with threads run natively, because simulated ranks have
one thread.

If a program calls one function in several phases, the totals of the ranks are not informative. Only causes that the
runtime found during the run are then correct. The planted call path must also be the first root cause at the planted
operation.

The last line is one JSON object:

- `planted_found` (bound: 0.95): share of programs in which the first root cause is the planted call path and rank.
  `kinds`: this share by kind of program. `aside`: this share for kinds and seeds that were not used in development.
- `conserved_worst` (bound: 0.05): largest |measured waiting - (attributed + unexplained waiting)| / measured waiting.
  `told_worst`: the same for waiting in collective operations and the causes that were found during the run.
- `unexplained_worst`, `unexplained_median`: largest and median share of unexplained waiting.
- `pop_error` (bound: 0.01): largest relative error of a planted load balance.
- `predicted_error` (bound: 0.1): relative error of the predicted time that ranks lose by waiting and communication at
  128 ranks, from runs with 2 to 16 ranks. The reference is a simulation. Median of the programs, and the worst.
- `overhead_geomean` (bound: 1.02): run time with `--mpi-wait sample` / run time without it, both measured in turn,
  and the same for each program.
- `not_running_worst`: largest share of waiting in OpenMP for threads without a processor, or threads that are late
  after a construct.

With --constants, each constant of modeling/root_causes.py is halved and doubled, and the root causes of all programs
are determined again: from the causes that were found during the run (`told`), and without these causes (`profiles`).
`why_wrong` is the share of first root causes with a wrong reason (*slower* instead of *more work*, or the reverse).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from launching import LAUNCH
from quipu.agent.archive.read import read_archive
from quipu.agent.cli.efficiencies import efficiency_view
from quipu.agent.merge.efficiency_times import run_times
from quipu.agent.merge.experiment import find_runs
from quipu.modeling import root_causes as modeling
from quipu.modeling.efficiency import parallel_factors
from quipu.modeling.rates import PathRates, Rates, to_document
from quipu.modeling.root_causes import Charge, RootCauses, root_causes
from quipu.modeling.run_times import RunTimes

BIN = Path(sys.executable).parent
# Without these variables, Open MPI binds all threads of a single rank to one processor (Open MPI 4, then 5).
UNBOUND = {"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"}
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
    """A program: its functions, the body of its steps, and the planted delay.

    region, rank: the first root cause; rank -1: all ranks in turn. operation: where the others wait, "" if this is not
    checked. factors: planted efficiencies. slow: the rank with the slower host, and the factor. threads: the program is
    native, with this number of threads.
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
    operation: str = ""

    @property
    def source(self) -> str:
        """The program in C."""
        names = [f"static void __attribute__((noinline)) {name}(long n) {{ turn(n); }}\n" for name in self.functions]
        return HEAD + "".join(names) + MAIN % {"steps": STEPS, "body": self.body}


def serial(dice: random.Random, p: int) -> Planted:
    """One rank works alone between two barriers. Another rank is late by less time before the first barrier."""
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
    """All ranks do equal work, one of them on a slower processor."""
    rank, factor, work = dice.randrange(p), dice.uniform(1.2, 2.0), dice.randrange(100_000, 300_000)
    body = f"big_loop({work}); even_work({work // 4}); {ALL_REDUCE}"
    balance = (p - 1 + factor) / p / factor
    factors = {"load_balance": balance, "work_balance": 1.0}
    return Planted("slow", p, ("even_work", "big_loop"), body, "big_loop", rank, factors, (rank, factor))


def pipeline(dice: random.Random, p: int) -> Planted:
    """Items pass through the ranks; one rank needs longer for its stage."""
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
    """The root of a broadcast sorts first; a small imbalance ends elsewhere."""
    root, other = dice.sample(range(p), 2)
    work, keys = dice.randrange(100_000, 300_000), dice.randrange(50_000, 200_000)
    body = f"""if (rank == {root}) sort_keys({keys}); static char data[10000];
        MPI_Bcast(data, sizeof data, MPI_CHAR, {root}, MPI_COMM_WORLD);
        even_work({work}); if (rank == {other}) small_delay({keys // 3});
        {ALL_REDUCE}"""
    return Planted("broadcast", p, ("sort_keys", "even_work", "small_delay"), body, "sort_keys", root)


def openmp(dice: random.Random, p: int) -> Planted:
    """One item of a loop with a dynamic schedule is as long as all others together, and starts last."""
    item = dice.randrange(3_000_000, 6_000_000)  # much longer than a time slice of the operating system
    body = f"""
        #pragma omp parallel for schedule(dynamic) num_threads(2)
        for (int i = 0; i < 4; i++) {{ if (i == 3) long_item({3 * item}); else short_item({item}); }}
        even_work({item // 4});"""
    return Planted("openmp", p, ("even_work", "long_item", "short_item"), body, "long_item", 0, threads=2)


def short_items(dice: random.Random, p: int) -> Planted:
    """As `openmp`, with items of a millisecond, which other programs on the machine disturb."""
    item = dice.randrange(500_000, 900_000)
    body = f"""
        #pragma omp parallel for schedule(dynamic) num_threads(2)
        for (int i = 0; i < 4; i++) {{ if (i == 3) long_item({3 * item}); else short_item({item}); }}
        even_work({item // 4});"""
    return Planted("short_items", p, ("even_work", "long_item", "short_item"), body, "long_item", 0, threads=2)


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
    """The root waits for a late leaf; later all others wait for the root, for less time."""
    rank, work = dice.randrange(1, p), dice.randrange(100_000, 300_000)
    late = work * dice.randrange(2 * p, 4 * p) // 4
    body = f"""even_work({work}); if (rank == {rank}) late_leaf({late}); static int all[64];
        MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD); if (rank == 0) write_out({work // 8});
        MPI_Bcast(all, 64, MPI_INT, 0, MPI_COMM_WORLD);"""
    return Planted("gather", p, ("even_work", "late_leaf", "write_out"), body, "late_leaf", rank)


def two(dice: random.Random, p: int) -> Planted:
    """Two ranks are late at the same barrier in turn, one of them by more time. A third rank has less work."""
    first, second, idle = dice.sample(range(p), 3)
    work = dice.randrange(100_000, 300_000)
    body = f"""if (rank != {idle}) even_work({work});
        if (step % 2 == 0 && rank == {first}) long_delay({2 * work});
        if (step % 2 && rank == {second}) short_delay({work});
        MPI_Barrier(MPI_COMM_WORLD);"""
    return Planted("two", p, ("even_work", "long_delay", "short_delay"), body, "long_delay", first)


def phases(dice: random.Random, p: int) -> Planted:
    """One function in three phases: two ranks have more work in one phase each, and less in the last phase."""
    first, second = dice.sample(range(p), 2)
    work = dice.randrange(100_000, 300_000)
    more, less = work * dice.randrange(6, 9) // 8, work * dice.randrange(2, 5) // 8
    body = f"""static char data[1000];
        work({work} + (rank == {first} ? {more} : 0)); MPI_Barrier(MPI_COMM_WORLD);
        work({work} + (rank == {second} ? {less} : 0));
        MPI_Bcast(data, sizeof data, MPI_CHAR, {second}, MPI_COMM_WORLD);
        work({2 * work} - (rank == {first} ? {more} : rank == {second} ? {less} : 0)); {ALL_REDUCE}"""
    return Planted("phases", p, ("work",), body, "work", first, operation="MPI_Barrier")


def again(dice: random.Random, p: int) -> Planted:
    """The same rank is late twice, in different functions before different operations."""
    rank, work = dice.randrange(p), dice.randrange(100_000, 300_000)
    more, less = work * dice.randrange(6, 9) // 8, work * dice.randrange(2, 5) // 8
    body = f"""assemble({work} + (rank == {rank} ? {more} : 0)); MPI_Barrier(MPI_COMM_WORLD);
        assemble({work} - (rank == {rank} ? {more} : 0)); solve({work} + (rank == {rank} ? {more + less} : 0));
        {ALL_REDUCE}"""
    return Planted("again", p, ("assemble", "solve"), body, "assemble", rank, operation="MPI_Barrier")


def turns(dice: random.Random, p: int) -> Planted:
    """A different rank has more work in each step; the totals are equal."""
    work = dice.randrange(100_000, 300_000)
    body = f"""work({work} + (step % p == rank ? {work * dice.randrange(3, 9) // 8} : 0)); MPI_Barrier(MPI_COMM_WORLD);
        even_work({work}); {ALL_REDUCE}"""
    return Planted("turns", p, ("work", "even_work"), body, "work", -1, operation="MPI_Barrier")


def columns(dice: random.Random, p: int) -> Planted:
    """One function before operations of rows and of columns of a grid of 2 × p/2 ranks; the totals are equal."""
    rank, work = dice.randrange(p), dice.randrange(100_000, 300_000)
    more = work * dice.randrange(3, 9) // 8
    body = f"""static MPI_Comm row, column; static double sum;
        if (step == 0) {{
            MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &row);
            MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &column);
        }}
        sweep({work} + (rank == {rank} ? {more} : 0));
        MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, cells, 1, MPI_INT, row);
        sweep({work} + (rank == {rank} ? 0 : {more}));
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, column);
        MPI_Barrier(MPI_COMM_WORLD);"""
    return Planted("columns", p, ("sweep",), f"static int cells[64]; {body}", "sweep", rank, operation="MPI_Alltoall")


def rows(dice: random.Random, p: int) -> Planted:
    """Rows of a triangle in a loop with a static schedule, and as much balanced work."""
    row = dice.randrange(40_000, 80_000)
    body = f"""
        #pragma omp parallel for schedule(static) num_threads(2)
        for (int i = 0; i < 20; i++) {{ even_work({8 * row}); long_row({row} * i); }}"""
    return Planted("rows", p, ("even_work", "long_row"), body, "long_row", 0, threads=2)


def collected(dice: random.Random, p: int) -> Planted:
    """One function before a reduction to a root, which waits for a leaf, and before a barrier; totals are equal."""
    root, leaf = dice.sample(range(p), 2)
    work = dice.randrange(100_000, 300_000)
    more = work * dice.randrange(3, 9) // 8
    body = f"""static double sum; MPI_Barrier(MPI_COMM_WORLD);
        count_cells({work} + (rank == {leaf} ? {more * p} : rank == {root} ? 0 : {work // 4}));
        MPI_Reduce(&sink, &sum, 1, MPI_DOUBLE, MPI_SUM, {root}, MPI_COMM_WORLD);
        count_cells({work} + (rank == {leaf} ? 0 : rank == {root} ? {more * p} : {more * p - work // 4}));"""
    return Planted("collected", p, ("count_cells",), body, "count_cells", leaf, operation="MPI_Reduce")


def guided(dice: random.Random, p: int) -> Planted:
    """The last item of a loop with a guided schedule is long."""
    item = dice.randrange(200_000, 400_000)
    body = f"""
        #pragma omp parallel for schedule(guided) num_threads(2)
        for (int i = 0; i < 16; i++) {{ if (i == 15) long_item({8 * item}); else short_item({item}); }}
        even_work({item});"""
    return Planted("guided", p, ("even_work", "long_item", "short_item"), body, "long_item", 0, threads=2)


def tasks(dice: random.Random, p: int) -> Planted:
    """The task that is created last is longer than all others together, on any thread."""
    task = dice.randrange(300_000, 900_000)
    body = f"""
        #pragma omp parallel num_threads(2)
        #pragma omp single
        for (int i = 0; i < 6; i++) {{
            #pragma omp task
            if (i == 5) long_task({8 * task}); else short_task({task});
        }}
        even_work({task});"""
    return Planted("tasks", p, ("even_work", "long_task", "short_task"), body, "long_task", 0, threads=2)


def nested(dice: random.Random, p: int) -> Planted:
    """Rows of a triangle in a static loop, each with an inner loop, in a region with an even loop and a barrier."""
    cell = dice.randrange(20_000, 60_000)
    body = f"""
        #pragma omp parallel num_threads(2)
        {{
            #pragma omp for schedule(static)
            for (int i = 0; i < 8; i++) for (int j = 0; j < i; j++) cell({cell});
            #pragma omp for schedule(static)
            for (int i = 0; i < 8; i++) even_work({4 * cell});
        }}"""
    return Planted("nested", p, ("even_work", "cell"), body, "cell", 0, threads=2)


def sections(dice: random.Random, p: int) -> Planted:
    """One section is longer than the other; both threads do the same work before, in the same region."""
    work = dice.randrange(300_000, 900_000)
    body = f"""
        #pragma omp parallel num_threads(2)
        {{
            even_work({work});
            #pragma omp sections
            {{
                #pragma omp section
                light_section({work});
                #pragma omp section
                heavy_section({3 * work});
            }}
        }}"""
    names = ("even_work", "light_section", "heavy_section")
    return Planted("sections", p, names, body, "heavy_section", 0, threads=2)


PREDICTED: tuple[Callable[[random.Random, int], Planted], ...] = (serial, linear, master, broadcast, gather)
"""Kinds whose delays are the same for any number of ranks of at least two."""
MEASURED, TARGET = (2, 4, 8, 16), 128
KINDS: tuple[Callable[[random.Random, int], Planted], ...] = (
    *(serial, linear, slow, pipeline, master, broadcast, openmp),
    *(halo, gather, two, phases, again, turns, short_items),
)
ASIDE: tuple[Callable[[random.Random, int], Planted], ...] = (columns, collected, rows, guided, tasks, nested, sections)
"""Kinds that were not used in development."""
NATIVE = (openmp, short_items, rows, guided, tasks, nested, sections)
"""Kinds with threads, of one rank."""


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
    """Write and build a program, and the files that its runs need."""
    folder.mkdir()
    (folder / "app.c").write_text(planted.source)
    rates = Rates(("instructions",), PathRates((), (RATE,), 1.0, 0.0, 1, "all"))
    (folder / "app.rates").write_text(json.dumps(to_document(rates)))
    compiler, flags = ("quipu-mpicc", ["-fopenmp"]) if planted.threads else ("quipu-smpicc", [])
    subprocess.run([BIN / compiler, "-O1", "-g", *flags, "app.c", "-o", "app"], cwd=folder, check=True)


def run(planted: Planted, folder: Path, runs: str = "runs") -> None:
    """Run a program: simulated by effort, or natively if it has threads."""
    ranks = str(planted.p)
    command, how = ["mpirun", "-n", ranks, "./app"], ["--mpi-wait", "all"]
    if not planted.threads:
        (folder / "platform.xml").write_text(platform(planted))
        (folder / "hosts").write_text("".join(f"node-{rank}\n" for rank in range(planted.p)))
        options = ["-platform", "platform.xml", "-hostfile", "hosts", f"--cfg=smpi/host-speed:{SPEED}Gf"]
        command, how = ["smpirun", "-np", ranks, *options, "./app"], ["--compute", "effort", "--rates", "app.rates"]
    words = [str(BIN / "quipu"), "run", *how, "--param", f"p={ranks}", "-o", runs, "--", *command]
    variables = {**os.environ, **LAUNCH, **UNBOUND, "OMP_NUM_THREADS": "2"}
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
    """Return the relative error of the waiting predicted at eight times the ranks, compared with simulation."""
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


TIMED_MAIN = """
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int p, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int step = 0; step < %(steps)d; step++) {
        %(body)s
    }
    double seconds = MPI_Wtime() - begin;
    MPI_Finalize();
    if (rank == 0) printf("seconds %%.9f\\n", seconds);
    return sink < 0.0;
}
"""


def many_paths(count: int) -> str:
    """Return a tree of functions with this number of call paths, all executed by one call."""
    names = [f"static void __attribute__((noinline)) leaf{number}(long n) {{ turn(n); }}" for number in range(count)]
    calls = " ".join(f"leaf{number}(n);" for number in range(count))
    return "\n".join([*names, f"static void __attribute__((noinline)) all_paths(long n) {{ {calls} }}"])


def overhead(folder: Path, rounds: int) -> dict[str, float]:
    """Return by program its time with probes / without probes, both measured; fastest of alternate runs."""
    work = "static void __attribute__((noinline)) work(long n) { turn(n); }"
    programs = {
        "every 2 ms": (work, f"work(1000000); {ALL_REDUCE}", 400),
        "every 0.2 ms": (work, f"work(100000); {ALL_REDUCE}", 4000),
        "every 20 us": (work, f"work(10000); {ALL_REDUCE}", 30000),
        "500 call paths": (many_paths(500), f"all_paths(2000); {ALL_REDUCE}", 400),
        "late root": (
            work,
            "work(rank ? 100000 : 150000); static char data[1000]; "
            "MPI_Bcast(data, sizeof data, MPI_CHAR, 0, MPI_COMM_WORLD); MPI_Barrier(MPI_COMM_WORLD);",
            2000,
        ),
    }
    found = {}
    for number, (kind, (functions, body, steps)) in enumerate(programs.items()):
        own = folder / f"overhead-{number}"
        own.mkdir()
        source = "#include <stdio.h>\n" + HEAD + functions + TIMED_MAIN % {"steps": steps, "body": body}
        (own / "app.c").write_text(source)
        subprocess.run([BIN / "quipu-mpicc", "-O1", "-g", "app.c", "-o", "app"], cwd=own, check=True)
        times: dict[str, list[float]] = {"sample": [], "local": []}
        for turn in range(rounds):
            for mode in ("sample", "local") if turn % 2 else ("local", "sample"):
                times[mode].append(_seconds(own, mode))
        found[kind] = min(times["sample"]) / min(times["local"])
        print(f"{kind:15} {found[kind]:.4f} times as long with probes", flush=True)
    return found


def _seconds(folder: Path, mode: str) -> float:
    words = [BIN / "quipu", "run", "--mpi-wait", mode, "-o", f"runs-{mode}", "--", "mpirun", "-n", "2", "./app"]
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env={**os.environ, **LAUNCH}, capture_output=True, text=True, check=False
    )
    found = re.search(r"^seconds ([0-9.]+)$", done.stdout, re.MULTILINE)
    if done.returncode or found is None:
        sys.exit(f"{folder.name}: {done.stdout}{done.stderr}")
    return float(found[1])


def first_cause(causes: RootCauses, times: RunTimes, planted: Planted) -> tuple[int, int]:
    """Return the first root cause: a call path and a rank, -1 without any.

    For a program with a planted operation, it must also be the first cause of this operation: ranks that wait elsewhere
    because others waited there have the same cause. If all ranks are late in turn, the cause refers to all of them.
    """
    found = _first((charge for cause in causes.causes for charge in cause.charges), planted)
    if planted.operation:
        there = (cause for cause in causes.causes if times.tree.name(cause.path) == planted.operation)
        if _first((charge for cause in there for charge in cause.charges), planted) != found:
            return -1, -1
    return found


def _first(charges: Iterable[Charge], planted: Planted) -> tuple[int, int]:
    """Return the call path and the rank that caused most waiting, without threads that did not run."""
    charged: dict[tuple[int, int], float] = {(-1, -1): 0.0}
    for charge in charges:
        key = charge.path, -1 if planted.rank < 0 else charge.rank
        charged[key] = charged.get(key, 0.0) + (0.0 if charge.not_running else charge.seconds)
    return max(charged, key=lambda key: charged[key])


def told_error(causes: RootCauses, times: RunTimes) -> float:
    """Return the relative difference between attributed and measured waiting in collective operations."""
    waited = sum(cause.waiting for cause in causes.causes if times.collective[cause.path])
    told = 0.0
    if times.delays is not None:
        told = float(times.delays.seconds[times.collective[times.delays.operation]].sum()) / times.ranks
    return abs(told - waited) / waited if waited > 0.0 else 0.0


def is_right(planted: Planted, times: RunTimes, path: int, rank: int) -> bool:
    """Return whether a call path (-1: none) and a rank are the planted cause."""
    names = [times.tree.name(step) for step in times.tree.ancestry(path)] if path >= 0 else []
    return planted.region in names and planted.rank == rank


@dataclass
class Scores:
    """Results of programs: whether the planted cause was found, by kind, and errors of each program."""

    runs: list[tuple[Planted, RunTimes]] = field(default_factory=list)
    found: dict[str, list[bool]] = field(default_factory=dict)
    not_running: list[float] = field(default_factory=list)
    conserved: list[float] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    unexplained: list[float] = field(default_factory=list)
    factors: list[float] = field(default_factory=list)

    def add(self, planted: Planted, folder: Path) -> None:
        """Run a program and record its results."""
        times = measured(planted, folder)
        causes = root_causes(times)
        assert causes is not None
        path, rank = first_cause(causes, times, planted)
        names = [times.tree.name(step) for step in times.tree.ancestry(path)] if path >= 0 else []
        right = is_right(planted, times, path, rank)
        self.runs.append((planted, times))
        self.found.setdefault(planted.kind, []).append(right)
        whole = causes.waiting
        self.conserved.append(abs(float(causes.delay_caused.sum()) + causes.unexplained - whole) / whole)
        self.told.append(told_error(causes, times))
        self.unexplained.append(causes.unexplained / whole)
        idle = sum(one.seconds for cause in causes.causes for one in cause.charges if one.not_running)
        self.not_running.append(idle / whole)
        known = parallel_factors(times)
        self.factors += [abs(known.of(key)[0] / value - 1.0) for key, value in planted.factors.items()]
        print(
            f"{'ok   ' if right else 'WRONG'} {planted.kind:10} p={planted.p}  "
            f"{planted.region} on rank {planted.rank}: {'->'.join(names)} on rank {rank}, "
            f"{self.unexplained[-1]:.0%} unexplained, {self.not_running[-1]:.0%} without a processor",
            flush=True,
        )

    def summary(self) -> dict[str, object]:
        """Return the figures of all programs together."""
        everything = [right for own in self.found.values() for right in own]
        return {
            "planted_found": round(statistics.fmean(everything), 4),
            "conserved_worst": round(max(self.conserved), 6),
            "told_worst": round(max(self.told), 6),
            "unexplained_worst": round(max(self.unexplained), 4),
            "unexplained_median": round(statistics.median(self.unexplained), 4),
            "not_running_worst": round(max(self.not_running), 4),
            "pop_error": round(max(self.factors, default=0.0), 6),
            "programs": len(everything),
            "kinds": {kind: round(statistics.fmean(own), 4) for kind, own in self.found.items()},
        }


CONSTANTS = ("NEAR", "_MOST_LATE", "_BY_WORK")
"""Constants of modeling/root_causes.py."""


def with_constants(runs: Sequence[tuple[Planted, RunTimes]]) -> dict[str, dict[str, float]]:
    """Return the quality of root causes with each constant unchanged, halved and doubled."""
    usual = {name: getattr(modeling, name) for name in CONSTANTS}
    result = {"as they are": _worth(runs)}
    for name, value in usual.items():
        for factor in (0.5, 2.0):
            setattr(modeling, name, type(value)(value * factor))
            result[f"{name} {getattr(modeling, name):g}"] = _worth(runs)
        setattr(modeling, name, value)
    return result


def _worth(runs: Sequence[tuple[Planted, RunTimes]]) -> dict[str, float]:
    result = {}
    for source in ("told", "profiles"):
        found, unexplained, wrong = [], [], []
        for planted, times in runs:
            causes = root_causes(times if source == "told" else replace(times, delays=None))
            assert causes is not None
            path, rank = first_cause(causes, times, planted)
            found.append(is_right(planted, times, path, rank))
            unexplained.append(causes.unexplained / causes.waiting)
            why = {
                one.more_work
                for cause in causes.causes
                for one in cause.charges
                if (one.path, one.rank) == (path, rank) and one.more_work is not None
            }
            wrong.append((planted.slow is None) not in why if why else False)
        result[f"{source} found"] = round(statistics.fmean(found), 4)
        result[f"{source} unexplained"] = round(statistics.fmean(unexplained), 4)
        result[f"{source} why_wrong"] = round(statistics.fmean(wrong), 4)
    return result


def planted_programs(kinds: Sequence[Callable[[random.Random, int], Planted]], count: int, seed: int) -> list[Planted]:
    """Return this number of programs of these kinds."""
    dice = random.Random(seed)
    found = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        found.append(kind(dice, 1 if kind in NATIVE else dice.choice((4, 6, 8))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=42, help="how many programs")
    parser.add_argument("--aside", type=int, default=42, help="how many programs that were not used in development")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15, help="how often programs run with and without probes")
    parser.add_argument("--constants", action="store_true", help="halve and double the constants of root causes")
    arguments = parser.parse_args()
    scores, aside = Scores(), Scores()
    with tempfile.TemporaryDirectory() as name:
        for number, planted in enumerate(planted_programs(KINDS, arguments.programs, arguments.seed)):
            scores.add(planted, Path(name) / str(number))
        others = planted_programs((*ASIDE, *KINDS), arguments.aside, 1000 + arguments.seed)
        for number, planted in enumerate(others):
            aside.add(planted, Path(name) / f"aside-{number}")
        if arguments.constants:
            print(json.dumps({"tuned": with_constants(scores.runs), "aside": with_constants(aside.runs)}))
            return
        errors = {}
        dice = random.Random(arguments.seed)
        for kind in PREDICTED:
            planted = kind(dice, MEASURED[0])
            errors[planted.kind] = predicted(planted, Path(name) / f"predicted-{planted.kind}")
            print(f"{planted.kind:10} predicted at p={TARGET}: {errors[planted.kind]:.1%} off", flush=True)
        overheads = overhead(Path(name), arguments.rounds)
    result = {
        **scores.summary(),
        "predicted_error": round(statistics.median(errors.values()), 4),
        "predicted_worst": round(max(errors.values()), 4),
        "overhead_geomean": round(statistics.geometric_mean(overheads.values()), 4),
        "overheads": {kind: round(value, 4) for kind, value in overheads.items()},
        "aside": aside.summary(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
