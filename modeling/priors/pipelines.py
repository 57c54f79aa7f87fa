# SPDX-License-Identifier: Apache-2.0
"""How waiting grows with the ranks: along trees, rings, and pipelines through process grids.

A wave through a process grid takes a stage for each step: a rank receives, computes, and passes on. Programs sweep from
all corners, one after the other, and the next wave begins where a corner is done, so that each dimension has its own
number of steps (Mudalige, Vernon and Jarvis, A plug-and-play model for evaluating wavefront computations on parallel
architectures, IEEE International Symposium on Parallel and Distributed Processing, 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..experiment import Experiment, FloatArray, Metric
from ..mpi_operations import operation_of
from ..pmnf.calibration import NOISY
from ..pmnf.model import Factor, Model, Term, add
from ..pmnf.modeler import fit_models
from ..pmnf.options import DEFAULT, Options
from ..process_grid import ProcessGrid
from .path_model import WAITING, unit
from .prior import Prior
from .requests import requested_bytes
from .slowdown import GROWTHS, growth_model

# Waiting has models with more freedom than Table I: each growth with ranks must explain more than a coefficient does,
# and waves from all corners, which few programs have, more than one wave by as much again.
# benchmarks/simulated_time.py, benchmarks/priors_applications.py
_PENALTY, _SWEEPS_PENALTY = NOISY.coefficient, 2.0 * NOISY.coefficient
# Where the process grid of a program is known, waiting for messages that grows neither along it nor along a tree must
# explain more by so much: from p = 8 to 216, px + py + pz and log2(p)² are alike to 2 %, and 5 % apart at 343.
# benchmarks/selection_campaign.py
# So must waiting for all ranks that grows with their number itself: the largest of p times by chance, on average, is a
# concave function of p (David and Nagaraja, Order Statistics, 2003, section 4.4), and a straight line its upper limit.
# benchmarks/priors_applications.py
_OTHER_PENALTY = 5.0 * NOISY.coefficient
# How the length of a pipeline through a process grid of two and three dimensions grows.
_PIPELINES = ((Fraction(1, 2), 0), (Fraction(1, 3), 0))
_TREE, _LINE = (Fraction(0), 1), (Fraction(1), 0)
_SIZE = Metric("message size", "bytes", "effort")
# Functions whose ratio changes by less, relatively, are the same but for a factor.
_ALIKE = 1e-9


@dataclass(frozen=True)
class Growth:
    """A function of numbers of ranks that waiting may grow by; its penalty is that of priors that have it.

    messages: how many of others a rank waits for, in a process grid.
    """

    model: Model
    penalty: float = _PENALTY
    messages: Model | None = None

    def __str__(self) -> str:
        """Return the function."""
        return str(self.model)


def waiting_growths(ranks: Sequence[str], grids: Sequence[ProcessGrid] = (), messages: bool = True) -> list[Growth]:
    """Return how waiting may grow with numbers of ranks, of which these `grids` are known, the likeliest first.

    messages: whether it waits for messages of single other ranks, which come along the grid; a chain of all ranks says
    nothing of what waits for all of them, where any may be late by chance, which grows more slowly than their number.

    One process waits for nobody: growth with the only number of ranks is that of g(p) - g(1), which is the length of a
    pipeline through a process grid for p^(1/3) and p^(1/2), and exactly that, in place of these two, for the `grids` of
    the program.
    """
    grids = [grid for grid in grids if messages or grid.dimensions > 1]
    known = [grid for grid in grids if grid.parameter in ranks]
    growths = []
    for grid in known:
        steps = _steps(grid, [1.0] * grid.dimensions)
        growths.append(Growth(steps, messages=_messages(grid, steps)))
    for grid in known:
        for steps in (_steps(grid, own) for own in _sweeps(grid.dimensions)):
            growths.append(Growth(steps, _SWEEPS_PENALTY, _messages(grid, steps, 2.0 ** (grid.dimensions - 1))))
    exact = {grid.parameter for grid in grids}
    for name in ranks:
        for power, log in GROWTHS:
            if name in exact and (power, log) in _PIPELINES:
                continue
            growth = growth_model(name, power, log)
            doubtful = (power, log) != _TREE if name in exact else not messages and (power, log) == _LINE
            penalty = _OTHER_PENALTY if doubtful else _PENALTY
            growths.append(Growth(replace(growth, constant=-1.0) if len(ranks) == 1 and not log else growth, penalty))
    return growths


def told_apart(growths: Sequence[Growth], parameters: tuple[str, ...], points: FloatArray) -> list[Growth]:
    """Return the growths without those that are another one before them times a factor at all points (C, m)."""
    kept: list[Growth] = []
    seen: list[FloatArray] = []
    for growth in growths:
        values = replace(growth.model, parameters=parameters).evaluate(points)
        unit = values / max(float(np.abs(values).max(initial=0.0)), 1e-300)
        if not any(np.abs(unit - own).max(initial=0.0) <= _ALIKE for own in seen):
            kept.append(growth)
            seen.append(unit)
    return kept


def stages(work: Model | None, size: Model | None, growths: Sequence[Growth]) -> list[Prior]:
    """Return the priors of a pipeline whose stages compute and then pass a message of this size on, by the `growths`.

    A stage takes the latency of the message, its transfer, and the computation (Hoisie, Lubeck and Wasserman,
    Performance and scalability analysis of teraflop-scale parallel architectures using multidimensional wavefront
    applications, International Journal of High Performance Computing Applications 14(4), 2000). None without messages.
    """
    if size is None:
        return []
    found = []
    for growth in growths:
        if growth.messages is not None:
            found.append(Prior((growth.model, growth.messages), WAITING, "", needed=(1,), penalty=growth.penalty))
        if work is not None and work.terms:
            each = (size.times(growth.model),) if size.terms else ()
            columns = (growth.model, *each, Model(work.parameters, 0.0, work.terms).times(growth.model))
            found.append(Prior(columns, WAITING, "", needed=(len(columns) - 1,), penalty=growth.penalty))
    return found


def message_sizes(experiment: Experiment, paths: Sequence[int], options: Options = DEFAULT) -> dict[int, Model]:
    """Return the bytes that a call moves, of these call paths where they grow, or that wait for a single other rank.

    The larger of bytes sent and received, or what a completion waits for, per visit: the mean over ranks of the bytes
    of an operation is that of its calls, since some ranks have fewer neighbours, times the size of a message.
    """
    visits = experiment.values.get("visits")
    if visits is None:
        return {}
    nothing = np.zeros_like(visits)
    sent, received = (experiment.values.get(name, nothing) for name in ("bytes_sent", "bytes_received"))
    requested = requested_bytes(experiment.tree, sent, received)
    moved = np.maximum(np.maximum(np.nan_to_num(sent), np.nan_to_num(received)), requested)
    moving = [path for path in paths if moved[path].any()]
    calls = visits[moving]
    sizes = np.where(calls > 0, moved[moving] / np.where(calls > 0, calls, 1.0), np.nan)
    models = fit_models(experiment.points, sizes, _SIZE, experiment.parameters, options)
    return {
        path: unit(model)
        for path, model in zip(moving, models, strict=True)
        if isinstance(model, Model) and (model.terms or _waits_for_one(experiment.tree.region_of(path).name))
    }


def _waits_for_one(region: str) -> bool:
    """Whether an operation waits for the message of a single other rank, whatever its size is."""
    operation = operation_of(region)
    return operation is not None and operation.waits_for in ("sender", "peers")


def _sweeps(dimensions: int) -> list[list[float]]:
    """Return the mean steps in each dimension of waves from all corners, one after the other, the fewest as 1.

    Loops over the two directions of each dimension are nested: the wave turns in the innermost one after each sweep,
    in the next one after each second sweep, and so on. So it passes each extent as often as the directions of that
    dimension and of those inside it go through all their cases, 2, 4, 8 times from the outermost loop.
    """
    if dimensions == 1:
        return []
    powers = [float(1 << dimension) for dimension in range(dimensions)]
    return [powers[::-1], powers]


def _messages(grid: ProcessGrid, steps: Model, waves: float = 0.0) -> Model:
    """Return how many messages others send on the way of waves through a process grid, for so many steps.

    On that way a rank passes messages on in each dimension in which there are several ranks, other than at the border.
    waves: how many there are; of the time of their messages a rank spends what it sends itself, which is no waiting.
    """
    own = tuple(Term(-waves, (Factor(grid.parameter, shares=1, axis=axis),)) for axis in grid.axes if waves)
    several = tuple(Term(1.0, (Factor(grid.parameter, several=True, axis=axis),)) for axis in grid.axes)
    whole = Model((grid.parameter,), 0.0, several).times(steps)
    return add([whole, Model((grid.parameter,), 0.0, own)])


def _steps(grid: ProcessGrid, steps: Sequence[float]) -> Model:
    """Return the sum of the extents of a process grid less one each, times the steps in each dimension."""
    extents = tuple(
        Term(times, (Factor(grid.parameter, Fraction(1), axis=axis),))
        for times, axis in zip(steps, grid.axes, strict=True)
    )
    return Model((grid.parameter,), -sum(steps), extents)
