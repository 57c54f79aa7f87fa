# SPDX-License-Identifier: Apache-2.0
"""Model time that grows faster than effort.

Where the diagnosis finds that time grows faster than effort (`slowdown`), the model is effort × (1 + growth), if that
explains more than its penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

from ..experiment import Experiment, Region, RegionKind
from ..mpi_operations import operation_of
from ..pmnf.calibration import NOISY
from ..pmnf.model import Factor, Model
from ..pmnf.options import DEFAULT, Options
from .dedicated import dedicated_times
from .measured import centred, fit_measured, one_by_one
from .path_model import PathModel, shapes, unit
from .prior import Prior
from .slowdown import Cause, Slowdown, growth_model, slowdowns

# Models contain a significant growth from this factor over the measured numbers of ranks on. (Findings of the diagnosis
# need a larger factor.) Source: benchmarks/priors_applications.py
_LEAST_CHANGE = 1.05
# The growth of computation beyond effort is bounded: when no data are left in a cache and all ranks share the memory,
# the time per unit of effort stays constant. If data exceed a cache, the share of the data in it falls like 1/x. Calls
# of the operating system may become slower with each rank. Such an unbounded growth must therefore improve the fit by
# the penalty of two more coefficients. Source: benchmarks/priors_applications.py
_UNBOUNDED_PENALTY = 2.0 * NOISY.coefficient


def with_growth(
    experiment: Experiment,
    models: Mapping[int, PathModel],
    options: Options = DEFAULT,
    only: Collection[int] | None = None,
) -> dict[int, PathModel]:
    """Return the models effort × (1 + growth) of call paths whose time grows faster than effort.

    models: of the time of all call paths. only: the call paths to examine; None: all. Growth must be significant
    (`slowdown`), and improve the fit.
    """
    entries = tuple(models[path] for path in range(len(experiment.tree)))
    slow: dict[int, list[Slowdown]] = {}
    for one in slowdowns(experiment, entries, _LEAST_CHANGE):
        if not entries[one.path].has_waiting and (only is None or one.path in only):
            slow.setdefault(one.path, []).append(one)
    if not slow:
        return {}
    times = dedicated_times(experiment, "time")[0]
    choices = {path: _priors(experiment, entries[path], own) for path, own in slow.items()}
    found = fit_measured(experiment, centred(times, options), choices, one_by_one(times, options))
    result = {}
    for path, model in found.items():
        entry, names = entries[path], sorted({experiment.parameters[one.parameter] for one in slow[path]})
        if isinstance(entry.model, Model) and shapes(model) != shapes(entry.model):
            basis = f"{entry.basis} × growth in {', '.join(names)}"
            result[path] = replace(entry, model=replace(model, notes=entry.model.notes), basis=basis, lower=entry.model)
    return result


def _priors(experiment: Experiment, entry: PathModel, slow: Sequence[Slowdown]) -> list[Prior]:
    """Return the prior effort alone, and priors with a product of growths, one growth for each slow parameter."""
    assert isinstance(entry.model, Model)
    form = unit(entry.model)
    found = [Prior((form,), entry.basis, "")]
    for growths in product(*(_growths(experiment, form, one) for one in slow)):
        columns = [form]
        for growth, _ in growths:
            columns += [growth(column) for column in columns]
        penalty = sum(own for _, own in growths)
        found.append(Prior(tuple(columns), entry.basis, "", needed=tuple(range(1, len(columns))), penalty=penalty))
    return found


def _growths(experiment: Experiment, form: Model, one: Slowdown) -> Sequence[tuple[Callable[[Model], Model], float]]:
    """Return possible growths of a slowdown (functions that multiply a column by the growth), with their penalties."""
    name, region = experiment.parameters[one.parameter], experiment.tree.region_of(one.path)
    if region.kind is RegionKind.MPI:
        found = growth_model(name, one.power, one.log)
        if not _may_be_ring(region) or _ring(form, name) is None:
            return [(found.times, 0.0)]
        return [(found.times, NOISY.coefficient), (lambda column: _ring(column, name) or column, 0.0)]
    least = min(line.low for line in one.lines)
    bounded = [growth_model(name, Fraction(0), 1)]
    if least > 0.0:
        bounded.append(Model((name,), 1.0, growth_model(name, Fraction(-1), 0).scaled(-least).terms))
    unbounded = [growth_model(name, Fraction(1), 0)] if one.cause is Cause.CONTENTION else []
    return [(own.times, 0.0) for own in bounded] + [(own.times, _UNBOUNDED_PENALTY) for own in unbounded]


def _may_be_ring(region: Region) -> bool:
    """Return whether a region is an operation of many ranks, or waits for one, and may use a ring."""
    operation = operation_of(region.name)
    return (
        operation is not None and operation.kind in ("collective", "persistent", "completion") and not operation.polls
    )


def _ring(model: Model, name: str) -> Model | None:
    """Return a model with the latencies of a ring instead of a tree; None if the model contains no tree.

    Libraries also pass small data around rings, or pad it to one block per rank (Patarasuk and Yuan, Bandwidth optimal
    all-reduce algorithms for clusters of workstations, J. Parallel Distrib. Comput. 69, 2009). A ring has as many steps
    as ranks; a tree has their logarithm.
    """
    tree, step = Factor(name, log=1), Factor(name, Fraction(1))
    terms = tuple(
        replace(term, factors=tuple(step if factor == tree else factor for factor in term.factors))
        for term in model.terms
        if tree in term.factors
    )
    return Model(model.parameters, 0.0, terms) if terms else None
