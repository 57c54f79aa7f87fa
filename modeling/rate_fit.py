# SPDX-License-Identifier: Apache-2.0
"""Rates (seconds per unit of effort) of call paths, fitted to measured time and effort.

time = Σ rate × effort with rates that are not negative, in three steps, each of which is drawn to the one before: the
program, every function, every call path. Metrics of effort are often in proportion to each other; then only the sum
matters, and what is drawn to decides how it is divided.

Operations of MPI have rates of another kind, per call and per byte: what the library takes the processor for where no
other rank is waited for (o of LogGP; Culler and others, PPoPP 1993; Alexandrov and others, SPAA 1995).
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
_VISITS = "visits"  # the last metric of rates, if it was measured
# What a call path of this share of the program's time is drawn to weighs as much as one measurement of it: in smaller
# ones clock and caches scatter more than they say about rates.
_SHARE = 1e-3
# Rates this many times those at which one metric alone would take the program's time are drawn back as much as the
# whole time of a call path says about them. benchmarks/simulated_time.py: samplesort on two ranks, 220 times too long
_PLAUSIBLE = 10.0
# The residual above which effort does not explain the time of a call path. Then each visit gets a time, too.
_EXPLAINED = 0.3
# Metrics that are rarer than this relative to instructions are not used: a few flops would explain the time of others.
_RARE = 1e-2
# A rate that takes less of the time than this in all measurements is 0, unless it is near the one that it is drawn to,
# which may matter at other sizes.
_NOTHING, _NEAR = 1e-6, 1e-3
# Seconds per byte that a call of MPI takes at most: ten times a slow copy; noise is not of bytes.
_SLOWEST_BYTE = 1e-8
# Messages whose sizes differ less than this tell a time per byte from the time of a call no better than noise does.
_SIZES_DIFFER = 1.5
_OF_SEVERAL = (
    "rates are means over ranks that ran side by side and shared the bandwidth of memory; calls of MPI, in which they "
    "waited for each other, have none"
)
_PLACES = 9  # of a rate: what the runtime counts in, 1e-15 s, is far below

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class _Rows:
    """Measurements, one a row: effort (rows, metrics), seconds (rows,), and the share of the time of their run.

    configurations: how many were measured, also those in which some call paths have no row.
    """

    path: NDArray[np.int64]
    effort: Matrix
    time: FloatArray
    share: FloatArray
    configurations: int


def fit_rates(experiment: Experiment, used: NDArray[np.bool_], several: bool = False) -> Rates:
    """Return the rates of the program of an experiment, fitted where they are `used`; shape (configurations,).

    There one rank ran alone, or `several` ran that had a processor each; then values are means over ranks. Functions
    without a time of their own count with their callers. Of operations of MPI, what one rank alone spends in them is
    the library's own time, and what several spend contains waiting, so that these give no rates of operations; the
    start and the end of MPI have none ever.

    Raises ModelingError if time or effort was not measured, or nothing is used.
    """
    for name, why in (("time", "it was measured with --counts"), ("instructions", "its programs were not built")):
        values = experiment.values.get(name)
        if values is None or not np.nansum(values) > 0:
            hint = "" if name == "time" else " with the compiler wrappers (quipu-cc, quipu-mpicc …)"
            raise ModelingError(f"{experiment.name}: has no {name}, so there are no rates: {why}{hint}")
    experiment = with_times_at_callers(experiment)
    metrics = tuple(name for name in (*METRICS, _VISITS) if name in experiment.values)
    rows = _rows(experiment, metrics, used)
    if not rows.time.size:
        raise ModelingError(
            f"{experiment.name}: has no run of one rank, and none of several with a processor each, so there are no "
            "rates: measure one at the sizes that a rank will have, such as: quipu run --param n=64 -- ./app 64; if "
            "the program needs several ranks, with as few as it needs: quipu run --param n=64 -- mpirun -n 2 ./app 64"
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
    """Return the rates of operations of MPI and of their call paths, those with the most time first."""
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
    """Return what may take the time of calls of MPI.

    Where all messages have about one size, time is of calls, and a byte takes no more than `drawn_to` says: half of a
    call's time per byte would be milliseconds on ranks that gather from thousands.
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
    counted = len(metrics) - (metrics[-1] == _VISITS)  # visits of what is expanded are none of its caller
    np.add.at(effort[:, :, :counted], owners[moved], effort[moved, :, :counted])
    effort[moved] = 0
    use = (times > 0) & effort.any(axis=2) & alone
    where, point = np.nonzero(use)
    return _as_rows(where, point, effort, times)


def _as_rows(where: NDArray[np.int64], point: NDArray[np.int64], effort: Matrix, times: FloatArray) -> _Rows:
    """Return the measurements of call paths `where` at configurations `point`; times: (call paths, configurations)."""
    share = times[where, point] / times.sum(axis=0)[point]
    return _Rows(where, effort[where, point], times[where, point], share, np.unique(point).size)


def typical(times: FloatArray) -> FloatArray:
    """Return the lower quartile of repetitions (last axis); 0 where nothing was measured.

    What disturbs a computation makes it longer; the shortest of many is luck with the clock of the processor.
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
    """What may take time: which metrics (metrics,) have rates, and the largest of these."""

    metrics: NDArray[np.bool_]
    most: FloatArray


def _allowed(metrics: Sequence[str], usual: FloatArray) -> tuple[_Allowed, list[_Allowed]]:
    """Return what may take the time of the program, and of its call paths: the next where those before explain little.

    Memory that is touched first, the start of a program, a function that has nothing to do on one rank: a visit of them
    takes time, and not the few instructions, of which more ranks may execute millions. usual: (metrics,) effort per
    second of the program.
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
    """Return the rates of some measurements: relative errors count, in proportion to the shares of the time.

    usual: (metrics,) effort per second of the program. Rates of a metric that is rare beside time here are drawn as
    much as those of the program: a hundred instructions beside a copy of megabytes must not get what is left of its
    time, which millions of them would take as well where there is something to compute. tries: what may take the time;
    the next where those before do not explain it, the one that does best if none does.
    """
    weight = np.sqrt(rows.share / rows.share.sum() * rows.time.size)
    relative = rows.effort / rows.time[:, None] * weight[:, None]
    common = (relative.mean(axis=0) > _RARE * relative[:, 0].mean()) | (usual == 0)  # one visit may take all of it
    share = float(rows.share.sum()) / rows.configurations
    rates, residual = np.zeros(len(drawn_to)), np.inf
    for allowed in tries:
        frequent = allowed.metrics & common
        used = relative * frequent
        scale = np.sqrt(np.mean(used**2, axis=0))
        # Columns of about one size: rates of bytes and of flops differ by orders.
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
    """Of static functions of one name keep the one with the most time."""
    best: dict[tuple[str, ...], PathRates] = {}
    for entry in functions:
        if entry.names not in best or best[entry.names].share < entry.share:
            best[entry.names] = entry
    return sorted(best.values(), key=lambda entry: -entry.share)
