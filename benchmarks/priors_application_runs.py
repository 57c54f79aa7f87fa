# SPDX-License-Identifier: Apache-2.0
"""Run the examples as applications in the evaluation of priors, and read their stated complexity.

SimGrid simulates all ranks one after the other. Their computation is measured on this machine without other ranks at
the same time. Communication and the resulting waiting are simulated. Existing runs are not repeated.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from pathlib import Path

import numpy as np
from priors_programs import EFFORT, EXAMPLES, SMPI_NETWORK, Floats, Point, build_example, call
from quipu.agent.merge.experiment import find_runs, load_experiment
from quipu.modeling.experiment import CallTree, Experiment, RegionKind
from quipu.modeling.pmnf.model import Exponents
from quipu.modeling.priors.table import Bytes, Scale, row_of

sys.path.append(str(EXAMPLES.parent / "tests" / "examples"))
from complexity import Complexity, OperationComplexity, evaluate, read_complexity

_NAMES = ("p", "n")
# The leading power of a stated number of bytes is computed at p and twice p (n and twice n).
_LARGE = 2.0**40


@dataclass(frozen=True)
class Application:
    """The runs of an example: at all points of p and n, and at two test points, one step out in p and in n."""

    name: str
    p: tuple[int, ...]
    n: tuple[int, ...]
    next_p: int
    next_n: int
    arguments: tuple[str, ...] = ()
    repetitions: int = 5

    @property
    def points(self) -> list[Point]:
        return [(p, n) for p in self.p for n in self.n]

    @property
    def tests(self) -> list[Point]:
        return [(self.next_p, self.n[-1]), (self.p[-1], self.next_n)]


# Sizes for which the data of all simulated ranks fit into the cache of one processor. They share this cache, and their
# data grow with the number of ranks, unlike those of real ranks.
_RANKS = (4, 8, 16, 32, 64)
FULL = (
    Application("heat", _RANKS, (8, 12, 16, 20, 24), 128, 28, ("20", "5")),
    Application("cg", _RANKS, (6, 8, 10, 12, 14), 128, 16, ("20",)),
    Application("samplesort", _RANKS, (2000, 4000, 6000, 8000, 10000), 128, 12000),
    Application("wavefront", (8, 27, 64, 125, 216), (4, 6, 8, 10, 12), 343, 14, ("2",)),
)
QUICK = (
    Application("heat", (2, 4, 8, 16, 32), (8, 12, 16, 20, 24), 64, 28, ("5", "5"), 1),
    Application("wavefront", (2, 4, 8, 16, 32), (4, 6, 8, 10, 12), 64, 14, ("2",), 1),
)


@dataclass(frozen=True)
class Kernel:
    """One region, or the MPI operations of one caller: its call paths, and the stated leading exponents of its time."""

    name: str
    kind: str
    paths: tuple[int, ...]
    truth: dict[str, Exponents]


@dataclass(frozen=True, eq=False)
class Runs:
    """The runs of an application: time and effort of all call paths, times (K, T, R) of the kernels at T tests.

    again: times of a second measurement of the tests, if there is one.
    """

    application: Application
    kernels: list[Kernel]
    experiment: Experiment
    tests: Floats
    again: Floats | None = None


def measure(
    applications: tuple[Application, ...], folder: Path, options: tuple[str, ...] = (), again: bool = False
) -> None:
    """Build the examples for SMPI and do the missing runs: all points once, then all of them again.

    options: further options for `quipu run`, for the folder of each example. again: the test points have a second set
    of as many repetitions.
    """
    jobs: list[tuple[int, Application, str, Point]] = []
    for own in applications:
        where = folder / own.name
        if not (where / own.name).exists():
            print(f"building {own.name}", flush=True)
            build_example(own.name, where, "quipu-smpi")
        done = Counter(
            (name, tuple(run.metadata.parameters[x] for x in _NAMES))
            for name in ("runs", "tests", "again")
            if (where / name).is_dir()
            for run in find_runs(where / name)
            if run.metadata.complete
        )
        wanted = [("runs", own.points), ("tests", own.tests), *([("again", own.tests)] if again else [])]
        for name, points in wanted:
            for point in points:
                jobs += [(number, own, name, point) for number in range(done[name, point] + 1, own.repetitions + 1)]
    jobs.sort(key=lambda job: job[0])
    for count, (number, own, name, (p, n)) in enumerate(jobs, 1):
        print(f"[{count}/{len(jobs)}] {own.name} p={p} n={n} repetition {number}", flush=True)
        launch = ("smpirun", "-np", p, *SMPI_NETWORK, f"./{own.name}", n, *own.arguments)
        call(("quipu", "run", *options, "--param", f"p={p},n={n}", "-o", name, "--", *launch), folder / own.name)


def load(application: Application, folder: Path) -> Runs:
    """Return the measurements of an application, with an equal number of repetitions at all points."""
    where = folder / application.name
    near = load_experiment(where / "runs")
    stated = read_complexity(EXAMPLES / application.name / "complexity.toml")
    kernels = [kernel for kernel in _kernels(near.tree, stated) if _time_of(near, kernel, application.points).all()]
    order = _columns(near, application.points)
    values = {name: near.values[name][:, order, :1] for name in EFFORT}
    times = near.values["time"][:, order]
    times = times[:, :, : int(np.isfinite(times[0]).sum(axis=1).min())]
    waits = near.values["wait_time"][:, order, : times.shape[2]]
    experiment = Experiment(
        application.name,
        _NAMES,
        np.array(application.points, dtype=np.float64),
        near.tree,
        {name: near.metrics[name] for name in ("time", "wait_time", *EFFORT)},
        {**values, "time": times, "wait_time": waits},
        grids=near.grids,
        excess={name: values[:, order, :1] for name, values in near.excess.items()},
    )

    def far(name: str) -> Floats:
        tests = load_experiment(where / name)
        known = {tests.tree.key(path): path for path in range(len(tests.tree))}
        places = [[known[near.tree.key(path)] for path in kernel.paths] for kernel in kernels]
        columns = _columns(tests, application.tests)
        return np.stack([tests.values["time"][own][:, columns].sum(axis=0) for own in places])

    again = far("again") if (where / "again").is_dir() else None
    return Runs(application, kernels, experiment, far("tests"), again)


def _columns(experiment: Experiment, points: list[Point]) -> list[int]:
    return [int(np.flatnonzero((experiment.points == point).all(axis=1))[0]) for point in points]


def _time_of(experiment: Experiment, kernel: Kernel, points: list[Point]) -> Floats:
    found: Floats = experiment.values["time"][list(kernel.paths)][:, _columns(experiment, points), 0].sum(axis=0)
    return found


def _kernels(tree: CallTree, stated: Complexity) -> list[Kernel]:
    """Return the stated regions and callers of MPI operations that were executed."""
    found = []
    for region in stated.regions:
        heads = {path for path in range(len(tree)) if fnmatchcase(tree.name(path), region.name)}
        paths = _below(tree, heads) if region.inclusive else heads
        own = tuple(sorted(path for path in paths if tree.region_of(path).kind is not RegionKind.MPI))
        if own and region.dominant:
            truth = {name: _exponents(region.blocks.get(name, (0, 0))) for name in _NAMES}
            found.append(Kernel(region.name.split("(")[0], "computation", own, truth))
    for caller in dict.fromkeys(operation.caller for operation in stated.operations):
        operations = [operation for operation in stated.operations if operation.caller == caller]
        own = tuple(
            path
            for path in range(len(tree))
            if tree.parent[path] >= 0 and fnmatchcase(tree.name(int(tree.parent[path])), caller)
            if tree.name(path) in [operation.name for operation in operations]
        )
        if own:
            orders = [_order(operation, stated) for operation in operations]
            truth = {name: max(order[name] for order in orders) for name in _NAMES}
            names = " + ".join(operation.name for operation in operations)
            found.append(Kernel(f"{caller.split('(')[0]}: {names}", "communication", own, truth))
    return found


def _below(tree: CallTree, heads: set[int]) -> set[int]:
    return {path for path in range(len(tree)) if heads & set(tree.ancestry(path))}


def _exponents(pair: tuple[float, int]) -> Exponents:
    return Fraction(pair[0]).limit_denominator(12), int(pair[1])


def _order(operation: OperationComplexity, stated: Complexity) -> dict[str, Exponents]:
    """Return the leading exponents of the time of an operation: Table I with stated calls and bytes, and waiting."""
    row = row_of(operation.name)
    if row is None:
        raise ValueError(f"{stated.program}: {operation.name} is no row of Table I")
    counts = [("calls", row.latency)]
    if row.bytes is not Bytes.NONE:
        received = row.bytes in (Bytes.RECEIVED, Bytes.ALL_RECEIVED)
        moved = "bytes_received" if received else "bytes_sent"
        counts += [(moved, scale) for scale in (row.transfer, row.reduction) if scale is not None]
    result = {}
    for name in _NAMES:
        orders = [operation.waiting.get(name, (Fraction(0), 0))]
        for count, scale in counts:
            if scale is None:
                continue
            power = _power(operation, stated, count, name)
            if name == "p":
                power += (scale is Scale.OTHERS) + (row.bytes in (Bytes.ALL_SENT, Bytes.ALL_RECEIVED))
            orders.append((power, int(scale is Scale.LOG and name == "p")))
        result[name] = max(orders)
    return result


def _power(operation: OperationComplexity, stated: Complexity, count: str, name: str) -> Fraction:
    """Return the power of a parameter in a stated count per rank, from its growth far out."""
    values = []
    for scale in (1.0, 2.0):
        point = {"p": _LARGE, "n": _LARGE, name: scale * _LARGE}
        if count in operation.sum_over_ranks:
            values.append(evaluate(operation.sum_over_ranks[count], stated.names(point, 0)) / point["p"])
        else:
            # Rank 1 represents the inner ranks. The first and the last rank may have less work.
            values.append(evaluate(operation.per_rank[count], stated.names(point, 1)))
    return Fraction(math.log2(values[1] / values[0])).limit_denominator(12) if values[0] else Fraction(0)
