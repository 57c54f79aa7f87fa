# SPDX-License-Identifier: Apache-2.0
"""Model the growth of waiting with the ranks: along trees, rings, and pipelines through process grids.

A wave through a process grid takes one stage per step: a rank receives, computes, and sends on. Programs sweep from all
corners, one after the other. The next wave begins when a corner is done, so each dimension has a separate number of
steps (Mudalige, Vernon and Jarvis, A plug-and-play model for evaluating wavefront computations on parallel
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

# Models of waiting have more freedom than Table I. Each growth with ranks must therefore improve the fit by more than a
# coefficient. Waves from all corners, which few programs have, need the same improvement again. Source:
# benchmarks/simulated_time.py, benchmarks/priors_applications.py
_PENALTY, _SWEEPS_PENALTY = NOISY.coefficient, 2.0 * NOISY.coefficient
# If the process grid of a program is known, waiting for messages that grows neither along the grid nor along a tree
# needs this improvement: from p = 8 to 216, px + py + pz and log2(p)² differ by 2 %, and at 343 by 5 %. Source:
# benchmarks/selection_campaign.py
# Waiting for all ranks that grows with their number needs it, too. The expected maximum of p random times is a concave
# function of p (David and Nagaraja, Order Statistics, 2003, section 4.4), and a straight line is its upper limit.
# Source: benchmarks/priors_applications.py
_OTHER_PENALTY = 5.0 * NOISY.coefficient
# Growth of the length of a pipeline through a process grid of two and three dimensions.
_PIPELINES = ((Fraction(1, 2), 0), (Fraction(1, 3), 0))
_TREE, _LINE = (Fraction(0), 1), (Fraction(1), 0)
_SIZE = Metric("message size", "bytes", "effort")
# Two functions are proportional if their ratio changes by less than this relative amount.
_ALIKE = 1e-9


@dataclass(frozen=True)
class Growth:
    """A function of numbers of ranks by which waiting may grow, and the penalty of priors with it.

    messages: in a process grid, the number of messages of other ranks that a rank waits for.
    """

    model: Model
    penalty: float = _PENALTY
    messages: Model | None = None

    def __str__(self) -> str:
        """Return the function as text."""
        return str(self.model)


def waiting_growths(ranks: Sequence[str], grids: Sequence[ProcessGrid] = (), messages: bool = True) -> list[Growth]:
    """Return the possible growths of waiting with numbers of ranks, the likeliest first. grids: known process grids.

    messages: whether the call path waits for messages of single ranks, which come along the grid. Waiting for all ranks
    does not follow a chain of ranks: any rank may be late by chance, and this waiting grows more slowly than the number
    of ranks.

    One process waits for nobody, so the growth with a number of ranks is g(p) - g(1). For p^(1/3) and p^(1/2), this is
    the length of a pipeline through a process grid. For known `grids`, the exact length replaces these two.
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


def distinct_growths(growths: Sequence[Growth], parameters: tuple[str, ...], points: FloatArray) -> list[Growth]:
    """Return the growths without growths that are proportional to an earlier one at all points (C, m)."""
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
    """Return models of the bytes per call of call paths whose bytes grow, or that wait for a single other rank.

    The bytes of a call are the larger of bytes sent and received (or the bytes that a completion waits for) divided by
    visits. The division is necessary because some ranks have fewer neighbours, and therefore fewer calls.
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
    """Return whether an operation waits for the message of a single other rank, of any size."""
    operation = operation_of(region)
    return operation is not None and operation.waits_for in ("sender", "peers")


def _sweeps(dimensions: int) -> list[list[float]]:
    """Return the steps in each dimension of waves from all corners, relative to the dimension with the fewest steps.

    Loops over the two directions of each dimension are nested. The wave turns in the innermost dimension after each
    sweep, in the next one after each second sweep, and so on. It therefore passes an extent 2, 4, 8 times, from the
    outermost to the innermost loop.
    """
    if dimensions == 1:
        return []
    powers = [float(1 << dimension) for dimension in range(dimensions)]
    return [powers[::-1], powers]


def _messages(grid: ProcessGrid, steps: Model, waves: float = 0.0) -> Model:
    """Return the number of messages of other ranks on the way of waves through a process grid, for these steps.

    On the way, a rank sends messages on in each dimension with several ranks, except at the border. waves: number of
    waves. A rank does not wait for the messages that it sends itself, so they are subtracted.
    """
    own = tuple(Term(-waves, (Factor(grid.parameter, shares=1, axis=axis),)) for axis in grid.axes if waves)
    several = tuple(Term(1.0, (Factor(grid.parameter, several=True, axis=axis),)) for axis in grid.axes)
    whole = Model((grid.parameter,), 0.0, several).times(steps)
    return add([whole, Model((grid.parameter,), 0.0, own)])


def _steps(grid: ProcessGrid, steps: Sequence[float]) -> Model:
    """Return Σ (extent - 1) · steps over the dimensions of a process grid."""
    extents = tuple(
        Term(times, (Factor(grid.parameter, Fraction(1), axis=axis),))
        for times, axis in zip(steps, grid.axes, strict=True)
    )
    return Model((grid.parameter,), -sum(steps), extents)
