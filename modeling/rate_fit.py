# SPDX-License-Identifier: Apache-2.0
"""Fit rates (seconds per unit of effort) of call paths to measured time and effort.

The model is time = Σ rate × effort over the metrics of effort, with rates ≥ 0. It is fitted in three steps: for the
program, for each function, and for each call path. In each step, a regularization keeps the rates near the rates of the
previous step. Metrics of effort are often proportional to each other. The measurements then only determine the sum of
their contributions, and the regularization divides the sum among the metrics.

MPI operations have rates per call and per byte. These describe the processor time of the MPI library without waiting
for other ranks: the overhead o of LogGP (Culler et al., LogP: towards a realistic model of parallel computation, 1993;
Alexandrov et al., LogGP, 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from .errors import ModelingError
from .experiment import Experiment, FloatArray, RegionKind
from .priors.untimed import timed_owners, with_times_at_callers
from .rates import OPERATION_METRICS, PathRates, Rates

METRICS = ("instructions", "flops", "loads", "stores", "bytes_loaded", "bytes_stored")
_VISITS = "visits"  # the last metric of rates, if visits were measured
# The regularization of a call path with this share of the time has the weight of one measurement. The times of smaller
# call paths contain more noise from the clock and the caches than information about rates.
_SHARE = 1e-3
# Largest plausible rate, relative to the rate at which the metric alone would take the whole time of the program. At
# this limit the regularization has the weight of the whole time of a call path. Without the limit, the simulated
# samplesort on two ranks took 220 times too long (benchmarks/simulated_time.py).
_PLAUSIBLE = 10.0
# Largest residual of a good fit. After a bad fit, the next alternative is tried, such as a rate of visits.
_EXPLAINED = 0.3
# Metrics with a smaller ratio to instructions get no rate. Otherwise, the fit would assign the time of other effort to
# a few flops.
_RARE = 1e-2
# A rate becomes 0 if its contribution is below the first share of the time in all measurements. Exception: a rate stays
# if it is at least the second share of the rate of the previous step, because it may be relevant at other sizes.
_NOTHING, _NEAR = 1e-6, 1e-3
# Largest rate of an MPI call in seconds per byte: ten times the rate of a slow copy. A larger rate would be noise.
_SLOWEST_BYTE = 1e-8
# If the sizes of messages differ by less than this factor, the time per byte and the time per call are not determined.
_SIZES_DIFFER = 1.5
_OF_SEVERAL = (
    "rates are means over ranks that ran side by side and shared the bandwidth of memory; calls of MPI, in which they "
    "waited for each other, have none"
)
_PLACES = 9  # significant digits of a rate; the resolution of the runtime, 1e-15 s, is far smaller

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class _Rows:
    """Measurements of call paths, one per row.

    - path: number of the call path, shape (rows,).
    - effort: shape (rows, metrics). time: seconds, shape (rows,). share: share of the time of the run, shape (rows,).
    - configurations: number of all measured configurations.
    """

    path: NDArray[np.int64]
    effort: Matrix
    time: FloatArray
    share: FloatArray
    configurations: int


def fit_rates(experiment: Experiment, used: NDArray[np.bool_], several: bool = False) -> Rates:
    """Return the rates of the program of an experiment, fitted to the configurations in the mask `used`.

    - used: shape (configurations,). These configurations have one rank. With `several`, they have several ranks with a
      processor each, and values are means over ranks.
    - The effort of functions without a time is added to their callers.
    - MPI operations only have rates if the configurations have one rank, because times of several ranks contain
      waiting.
    - The start and the end of MPI have no rates.

    Raises ModelingError if time or effort was not measured, or if no configuration is used.
    """
    for name, why in (("time", "it was measured with --counts"), ("instructions", "its programs were not built")):
        values = experiment.values.get(name)
        if values is None or not np.nansum(values) > 0:
            hint = "" if name == "time" else " with the compiler wrappers (quipu-cc, quipu-mpicc …)"
            raise ModelingError(f"{experiment.name}: has no {name}, so rates cannot be fitted: {why}{hint}")
    experiment = with_times_at_callers(experiment)
    metrics = tuple(name for name in (*METRICS, _VISITS) if name in experiment.values)
    rows = _rows(experiment, metrics, used)
    if not rows.time.size:
        raise ModelingError(
            f"{experiment.name}: rates need a run of one rank, or of few ranks with a "
            "processor each, and there is none. "
            "Measure one with the problem size that a rank will have, such as: quipu run --param n=64 -- ./app 64, or "
            "with few ranks: quipu run --param n=64 -- mpirun -n 2 ./app 64"
        )
    tree = experiment.tree
    nothing = np.zeros(len(metrics))
    usual = rows.effort.sum(axis=0) / rows.time.sum()
    whole, tries = _allowed(metrics, usual)
    usual = np.where(whole.metrics, usual, 0.0)
    program = _fit(rows, (), "the program", nothing, nothing, 0.0, [whole])
    functions, callpaths = list[PathRates](), list[PathRates]()
    region = tree.region[rows.path]
    for number in np.unique(region).tolist():
        of_function = _chosen(rows, region == number)
        of = tree.regions[number]
        function = _fit(of_function, (of.name,), of.display, np.array(program.rates), usual, _SHARE, tries)
        functions.append(function)
        for path in np.unique(of_function.path).tolist():
            of_path = _chosen(of_function, of_function.path == path)
            key, label, drawn_to = tree.key(path), tree.label(path), np.array(function.rates)
            callpaths.append(_fit(of_path, key, label, drawn_to, usual, _SHARE, tries))
    operations, calls = ([], []) if several else _of_mpi(experiment, used)
    return Rates(
        metrics=metrics,
        program=program,
        functions=tuple(_merged(functions)),
        callpaths=tuple(sorted(callpaths, key=lambda entry: -entry.share)),
        operations=tuple(operations),
        calls=tuple(calls),
        experiment=experiment.name,
        points=tuple(
            {name: float(value) for name, value in zip(experiment.parameters, point, strict=True)}
            for point in experiment.points[used].tolist()
        ),
        repetitions=int(experiment.values["time"].shape[2]),
        notes=(*experiment.notes, *((_OF_SEVERAL,) if several else ())),
    )


def _of_mpi(experiment: Experiment, alone: NDArray[np.bool_]) -> tuple[list[PathRates], list[PathRates]]:
    """Return the rates of MPI operations, and of their call paths, each in descending order of time.

    alone: mask (configurations,) of the configurations that are used.
    """
    rows, tree = _mpi_rows(experiment, alone), experiment.tree
    nothing = np.zeros(len(OPERATION_METRICS))
    operations, calls = list[PathRates](), list[PathRates]()
    region = tree.region[rows.path]
    for number in np.unique(region).tolist():
        of_operation = _chosen(rows, region == number)
        name = tree.regions[number].name
        operations.append(_fit(of_operation, (name,), name, nothing, nothing, 0.0, _of_calls(of_operation, nothing)))
        drawn_to = np.array(operations[-1].rates)
        for path in np.unique(of_operation.path).tolist():
            own = _chosen(of_operation, of_operation.path == path)
            tries = _of_calls(own, drawn_to)
            calls.append(_fit(own, tree.key(path), tree.label(path), drawn_to, nothing, _SHARE, tries))
    for entries in (operations, calls):
        entries.sort(key=lambda entry: -entry.share)
    return operations, calls


def _of_calls(rows: _Rows, drawn_to: FloatArray) -> list[_Allowed]:
    """Return the allowed metrics and rates of MPI calls.

    If all messages have about the same size, the time belongs to calls, and the rate per byte is at most the rate per
    byte in `drawn_to` (rates per call and per byte). Otherwise, a part of the time of a call would become a rate per
    byte, and a rank that gathers data from thousands of other ranks would take milliseconds.
    """
    calls, moved = rows.effort.T
    sizes = moved[calls > 0] / calls[calls > 0]
    differ = bool(sizes.size) and float(sizes.max()) > _SIZES_DIFFER * float(sizes.min())
    per_byte = _SLOWEST_BYTE if differ else float(drawn_to[1])
    return [_Allowed(np.array([True, per_byte > 0]), np.array([np.inf, per_byte or np.inf]))]


def _mpi_rows(experiment: Experiment, alone: NDArray[np.bool_]) -> _Rows:
    tree, values = experiment.tree, experiment.values
    is_mpi = np.array([entry.kind is RegionKind.MPI for entry in tree.regions], dtype=bool)[tree.region]
    times = np.where((is_mpi & ~tree.start_and_end)[:, None], typical(values["time"]), 0.0)
    none = np.zeros_like(values["time"])
    visits, sent, received = (values.get(name, none) for name in ("visits", "bytes_sent", "bytes_received"))
    effort = np.stack([np.nan_to_num(own).max(axis=2) for own in (visits, sent + received)], axis=2)
    where, point = np.nonzero((times > 0) & effort.any(axis=2) & alone)
    return _as_rows(where, point, effort, times)


def _rows(experiment: Experiment, metrics: Sequence[str], alone: NDArray[np.bool_]) -> _Rows:
    times = typical(experiment.values["time"])
    effort = np.stack([np.nan_to_num(experiment.values[name]).max(axis=2) for name in metrics], axis=2)
    tree = experiment.tree
    is_mpi = np.array([entry.kind is RegionKind.MPI for entry in tree.regions], dtype=bool)[tree.region]
    times = np.where(is_mpi[:, None], 0.0, times)
    owners = timed_owners(tree, times)
    moved = np.flatnonzero(owners != np.arange(len(tree)))
    counted = len(metrics) - (metrics[-1] == _VISITS)  # visits of inlined functions are not visits of the caller
    np.add.at(effort[:, :, :counted], owners[moved], effort[moved, :, :counted])
    effort[moved] = 0
    use = (times > 0) & effort.any(axis=2) & alone
    where, point = np.nonzero(use)
    return _as_rows(where, point, effort, times)


def _as_rows(where: NDArray[np.int64], point: NDArray[np.int64], effort: Matrix, times: FloatArray) -> _Rows:
    """Return the measurements of the call paths `where` (rows,) at the configurations `point` (rows,).

    effort: (call paths, configurations, metrics); times: (call paths, configurations), seconds.
    """
    share = times[where, point] / times.sum(axis=0)[point]
    return _Rows(where, effort[where, point], times[where, point], share, np.unique(point).size)


def typical(times: FloatArray) -> FloatArray:
    """Return the lower quartile over repetitions (last axis); 0 where nothing was measured.

    Disturbances only increase times, so the typical time is one of the smaller times. It is not the minimum, because
    the minimum of many repetitions depends on short boosts of the clock.
    """
    finite = np.where(np.isfinite(times), times, np.nan)
    measured = ~np.isnan(finite).all(axis=-1)
    result = np.zeros(measured.shape)
    result[measured] = np.nanquantile(finite[measured], 0.25, axis=-1)
    return result


def _chosen(rows: _Rows, which: NDArray[np.bool_]) -> _Rows:
    return _Rows(rows.path[which], rows.effort[which], rows.time[which], rows.share[which], rows.configurations)


@dataclass(frozen=True)
class _Allowed:
    """Limits of a fit. metrics: mask of the metrics that may have rates; most: largest rates. Shape (metrics,)."""

    metrics: NDArray[np.bool_]
    most: FloatArray


def _allowed(metrics: Sequence[str], usual: FloatArray) -> tuple[_Allowed, list[_Allowed]]:
    """Return the allowed rates of the program, and alternatives for call paths, which are tried in this order.

    In some call paths, the time belongs to the visits and not to the few instructions: first accesses to memory, the
    start of a program, a function without work on one rank. With more ranks, such a call path may execute millions of
    instructions. A large rate of instructions would then predict a time that is much too long.

    usual: effort of the program per second, shape (metrics,).
    """
    of_effort = np.array([name != _VISITS for name in metrics])
    everything = np.ones(len(metrics), dtype=bool)
    unbounded = np.full(len(metrics), np.inf)
    plausible = np.where(of_effort & (usual > 0), _PLAUSIBLE / np.maximum(usual, 1e-300), np.inf)
    whole = _Allowed(of_effort, unbounded)
    visits = [_Allowed(everything, plausible)] if not of_effort.all() else []
    return whole, [_Allowed(of_effort, plausible), *visits, whole]


def _fit(
    rows: _Rows,
    names: tuple[str, ...],
    label: str,
    drawn_to: FloatArray,
    usual: FloatArray,
    at_share: float,
    tries: Sequence[_Allowed],
) -> PathRates:
    """Return the rates of a call path, function or program, fitted to the relative errors of its times.

    Errors are weighted by the shares of the time.

    - names, label: fields of the result.
    - drawn_to: rates of the previous step, shape (metrics,). The regularization keeps the rates near these rates.
    - usual: effort of the program per second, shape (metrics,).
    - at_share: for a call path with this share of the time, the regularization has the weight of one measurement. The
      weight is larger for a metric that is rare relative to the time. For example, 100 instructions next to a copy of
      megabytes must not get the rest of the time, because millions of instructions would then take far too long.
    - tries: limits of the rates. The first limits with a good fit are used; if all fits are bad, the best fit is used.
    """
    weight = np.sqrt(rows.share / rows.share.sum() * rows.time.size)
    relative = rows.effort / rows.time[:, None] * weight[:, None]
    # A metric without a usual value, such as visits, is not called rare, because one visit may take all of the time.
    common = (relative.mean(axis=0) > _RARE * relative[:, 0].mean()) | (usual == 0)
    share = float(rows.share.sum()) / rows.configurations
    rates, residual = np.zeros(len(drawn_to)), np.inf
    for allowed in tries:
        frequent = allowed.metrics & common
        used = relative * frequent
        scale = np.sqrt(np.mean(used**2, axis=0))
        # Scale the columns to similar sizes, because rates of bytes and flops differ by orders of magnitude.
        columns = np.where(scale > 0, scale, 1.0)
        pull = np.sqrt(at_share / share) * np.maximum(scale, usual / _PLAUSIBLE)
        system = np.concatenate((used, np.diag(pull))) / columns
        wanted = np.concatenate((weight, pull * drawn_to))
        found = lsq_linear(system, wanted, (0.0, allowed.most * columns), method="bvls").x
        own = np.where(frequent, np.maximum(found, 0.0) / columns, 0.0)
        matters = (rows.effort * own / rows.time[:, None]).max(axis=0) >= _NOTHING
        own = np.where(matters | ((drawn_to > 0) & (own >= _NEAR * drawn_to)), own, 0.0)
        errors = (rows.effort @ own - rows.time) / rows.time
        left = float(np.sqrt(np.average(errors**2, weights=rows.share)))
        if left < residual:
            rates, residual = own, left
        if residual <= _EXPLAINED:
            break
    return PathRates(
        names=names,
        rates=tuple(min(1.0, float(f"{rate:.{_PLACES}g}")) for rate in rates.tolist()),
        share=share,
        residual=min(residual, 1e300),
        measurements=int(rows.time.size),
        label=label,
    )


def _merged(functions: Sequence[PathRates]) -> list[PathRates]:
    """Return the functions in descending order of time; of static functions with equal names, only the first."""
    best: dict[tuple[str, ...], PathRates] = {}
    for entry in functions:
        if entry.names not in best or best[entry.names].share < entry.share:
            best[entry.names] = entry
    return sorted(best.values(), key=lambda entry: -entry.share)
