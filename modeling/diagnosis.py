# SPDX-License-Identifier: Apache-2.0
"""Find call paths whose time grows faster than their effort, the cause, and the loss at a larger scale.

If the time of a call path follows its effort, its time per unit of effort is the same at every configuration. The
slowdown of a call path with a prior is r = time / expected time. The expected time is a rate × the effort
(computation), or the expected run time of the MPI operation (communication; priors/table.py).

The slowdown along a parameter x is fitted by r = a + b·g(x). A line consists of points that differ only in x. Each line
has separate coefficients a and b. All lines share one slowly growing function g. The cause of a significant slowdown is
waiting or contention in MPI, or contention or cache effects in computation.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .analysis import Analysis
from .catalogue import BLIND_PARAMETERS, BLIND_POINTS, NO_EFFORT
from .evaluation import Evaluation, evaluate
from .experiment import Experiment, RegionKind
from .models import of_time
from .pmnf.data.lines import lines
from .priors.slowdown import LEAST_VALUES, Cause, slowdowns
from .priors.untimed import OF_CALLS

# Findings that lose less than this part of all time at the target are left out.
_LEAST_LOSS = 1e-3
# Growth beyond effort is reported if it takes more than this part of the program.
_LEAST_BEYOND = 0.01
# The default target is this multiple of the largest measured number of ranks. benchmarks/modeling_accuracy.py and
# modeling_layouts.py check predictions and intervals up to this factor.
_TIMES_RANKS = 16.0
# The default target if no parameter is the number of ranks: this multiple of the largest value of each parameter.
_TIMES_OTHERS = 4.0
# A note names call paths without effort if they take at least this part of the time.
_WITHOUT_EFFORT = 0.05
_NAMED = 3  # largest number of regions in this note

# Texts for notes on call paths without effort: a description of the kind, and the consequence for the user.
_UNSEEN = "it is unknown whether their time grows faster than their work"
_NOT_BUILT = (
    "call paths without effort",
    f"{_UNSEEN}; build them with the compiler wrappers (quipu-cc, quipu-mpicc …)",
)
_NO_COST = (
    "operations of MPI whose time does not depend on calls and bytes",
    "only the growth of their time is known",
)
_NO_MODEL = ("call paths whose effort has no model", f"{_UNSEEN}; measure more values of the parameters")
_NOT_COUNTED = {
    RegionKind.OPENMP: ("OpenMP constructs", "they have no effort; only the growth of their time is known"),
    RegionKind.PYTHON: ("functions of Python", f"{_UNSEEN}, because effort is counted in compiled code only"),
}


@dataclass(frozen=True)
class Finding:
    """One call path that loses time as one parameter grows.

    - path, label: number and text of the call path. cause: why it is slower. parameter: the growing parameter.
    - predicted: exclusive time at the target (s). If `in_model`, it is the prediction of the model of time, otherwise
      the time from effort × the slowdown.
    - lost: the part of `predicted` that would be saved with the slowdown at the smallest measured value (s).
    - in_model: whether the model of time contains waiting or growth beyond effort.
    - slowdown_measured, slowdown: the slowdown at the largest measured value, and at the target. Both are relative to
      the slowdown at the smallest measured value.
    - growth: function of the slowdown, such as "p^(1/3)".
    - significance: expected part of false findings among all findings that are at least as significant.
    - wait_share: waiting as a share of the time at the largest values of the parameter; NaN if it was not measured.
    - effort, basis: the model of time from effort as text, and the kind of effort.
    """

    path: int
    label: str
    cause: Cause
    parameter: str
    growth: str
    predicted: float
    lost: float
    slowdown_measured: float
    slowdown: float
    significance: float
    wait_share: float
    effort: str
    basis: str
    in_model: bool

    @property
    def evidence(self) -> str:
        """Return the evidence of the finding as text."""
        text = f"{self.slowdown_measured:.3g} times slower over the measured {self.parameter}"
        if math.isfinite(self.wait_share):
            text += f", {self.wait_share:.0%} waiting"
        return f"{text}, chance {self.significance:.0e}"


@dataclass(frozen=True)
class BeyondEffort:
    """A call path without a finding whose model of time contains waiting or growth beyond effort.

    The model was selected by its evidence, but the slowdown over one parameter alone is not significant. For example,
    it may depend on the shape of the process grid.

    - predicted, lost: exclusive time at the target, and the part of it beyond effort (s).
    - basis: the parts of the model, such as "table I: MPI_Recv + waiting".
    """

    path: int
    label: str
    predicted: float
    lost: float
    basis: str


@dataclass(frozen=True)
class Diagnosis:
    """The result of a diagnosis at a point. findings: the largest loss first.

    - predicted: time of the program at the point, as `evaluate` returns it (s).
    - total: time of the program from effort alone, without waiting and growth beyond effort (s).
    - start_and_end: time of the start and the end of MPI, which is not part of the other times (s).
    - beyond: ratio of the point to the measured range, for parameters outside of it.
    - oversubscribed_share: part of `total` that is predicted from runs with more ranks than processors.
    - without_effort: part of `total` in call paths without effort. Their time may grow because their work does, which
      cannot be distinguished from a slowdown.
    - notes: configurations and parameters that could not be examined, with the reason.
    - others: call paths without a finding that lose at least 1 % of the program by their models, largest first.
    """

    point: dict[str, float]
    predicted: float
    total: float
    start_and_end: float
    beyond: dict[str, float]
    oversubscribed_share: float
    without_effort: float
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    others: tuple[BeyondEffort, ...] = ()

    @property
    def not_in_models(self) -> float:
        """Return the time that is lost by findings whose slowdown is not part of the model of time (s)."""
        return sum(finding.lost for finding in self.findings if not finding.in_model)

    def share(self, finding: Finding | BeyondEffort) -> float:
        """Return the lost time of a finding as a share of `predicted` + `not_in_models`, all time at the point."""
        whole = self.predicted + self.not_in_models
        return finding.lost / whole if whole > 0 else math.nan


def scale_of(experiment: Experiment, chosen: Mapping[str, float]) -> tuple[float, ...]:
    """Return the target, one value per parameter: the chosen value, or a default.

    The default is 16 times the largest measured p, and the largest measured value of the other parameters. Without a
    parameter p, it is four times the largest value of each parameter. With a single configuration, which determines no
    growth, it is this configuration.
    """
    largest = experiment.points.max(axis=0) if experiment.configurations else np.ones(len(experiment.parameters))
    times = {"p": _TIMES_RANKS} if "p" in experiment.parameters else dict.fromkeys(experiment.parameters, _TIMES_OTHERS)
    if experiment.configurations == 1:
        times = {}
    return tuple(
        float(chosen.get(name, times.get(name, 1.0) * value))
        for name, value in zip(experiment.parameters, largest.tolist(), strict=True)
    )


def blind_spots(experiment: Experiment) -> tuple[str, ...]:
    """Return notes on data that a diagnosis cannot use.

    These are configurations whose ranks waited for processors, and parameters with too few values.
    """
    usable = experiment.dedicated
    notes = []
    if not usable.all():
        notes.append(BLIND_POINTS(points=f"{np.count_nonzero(~usable)} of {len(usable)} configurations"))
    few: dict[str, list[str]] = {}
    for column, name in enumerate(experiment.parameters):
        if _most_values(experiment, column, usable) < LEAST_VALUES:
            enough = _most_values(experiment, column, np.ones_like(usable)) >= LEAST_VALUES
            where = (
                "with a processor for each rank" if enough or not usable.any() else "with the other parameters equal"
            )
            few.setdefault(where, []).append(name)
    for where, names in few.items():
        notes.append(BLIND_PARAMETERS(names=" and of ".join(names), least=LEAST_VALUES, where=where))
    return tuple(notes)


def _most_values(experiment: Experiment, column: int, usable: NDArray[np.bool_]) -> int:
    """Return the largest number of values of a parameter on a line of configurations that differ only in it.

    usable: mask (C,) of the configurations that count.
    """
    along = lines(experiment.points, column)
    return max((np.unique(experiment.points[line][usable[line], column]).size for line in along), default=0)


def diagnose(experiment: Experiment, analysis: Analysis, point: Mapping[str, float]) -> Diagnosis:
    """Return the call paths whose time grows faster than effort, ranked by the time that they lose at a point.

    analysis: the models of the experiment. point: value of each parameter. If some runs are count-only, numbers of call
    paths refer to the tree of the runs with times. Raises ModelingError if there are no times, or the parameters of the
    point do not match.
    """
    experiment, analysis = of_time(experiment, analysis)
    whole, full = evaluate(analysis, point), analysis.models("time")
    analysis = analysis.from_effort
    grows = slowdowns(experiment, analysis.models("time"))
    time = evaluate(analysis, point)
    place = tuple(time.point.values())
    found: list[Finding] = []
    for slowdown in grows:
        entry, expected = analysis.models("time")[slowdown.path], time.exclusive[slowdown.path].value
        now, first, there = slowdown.factors(place)
        in_model = full[slowdown.path].lower is not None
        predicted = whole.exclusive[slowdown.path].value if in_model else expected * there
        if there > first and expected > 0 and predicted > 0:
            found.append(
                Finding(
                    slowdown.path,
                    experiment.tree.label(slowdown.path),
                    slowdown.cause,
                    experiment.parameters[slowdown.parameter],
                    slowdown.growth,
                    predicted,
                    predicted * (1.0 - first / there),
                    now / first,
                    there / first,
                    slowdown.significance,
                    slowdown.wait_share,
                    str(entry.model),
                    entry.basis,
                    in_model,
                )
            )
    found.sort(key=lambda finding: (-finding.lost, finding.path, finding.parameter))
    total = time.total.value
    alone = {
        path: prediction.value
        for path, (entry, prediction) in enumerate(zip(analysis.models("time"), time.exclusive, strict=True))
        if entry.is_from_time_alone and not experiment.tree.start_and_end[path] and prediction.value > 0
    }
    without_effort = sum(alone.values()) / total if total > 0 else 0.0
    notes = blind_spots(experiment)
    if without_effort >= _WITHOUT_EFFORT:
        notes += _without_effort(experiment, alone, total)
    least = _LEAST_LOSS * (whole.total.value + sum(one.lost for one in found if not one.in_model))
    return Diagnosis(
        time.point,
        whole.total.value,
        total,
        whole.start_and_end.value,
        time.beyond,
        time.oversubscribed_share,
        without_effort,
        tuple(one for one in found if one.lost >= least),
        notes,
        _others(whole, time, {one.path for one in found}),
    )


def _others(whole: Evaluation, from_effort: Evaluation, found: Collection[int]) -> tuple[BeyondEffort, ...]:
    """Return the call paths without a finding that lose at least _LEAST_BEYOND of the program, largest loss first.

    whole, from_effort: the time at the same point, by the models of time and from effort alone. found: the call paths
    with a finding.
    """
    tree, least = whole.analysis.tree, _LEAST_BEYOND * whole.total.value
    result = []
    for path, entry in enumerate(whole.analysis.models("time")):
        if entry.lower is None or path in found or tree.start_and_end[path]:
            continue
        predicted = whole.exclusive[path].value
        lost = predicted - from_effort.exclusive[path].value
        if lost > 0 and lost >= least:
            result.append(BeyondEffort(path, tree.label(path), predicted, lost, entry.basis))
    return tuple(sorted(result, key=lambda one: (-one.lost, one.path)))


def _without_effort(experiment: Experiment, alone: Mapping[int, float], total: float) -> tuple[str, ...]:
    """Return notes on call paths without effort, one per kind.

    alone: predicted seconds of these call paths; total: seconds of the program.
    """
    counted = np.zeros(len(experiment.tree), dtype=bool)
    for name, values in experiment.values.items():
        if experiment.metric(name).is_effort and name not in OF_CALLS:
            counted |= np.nan_to_num(values).any(axis=(1, 2))
    groups: dict[tuple[str, str], dict[str, float]] = {}
    for path, seconds in alone.items():
        kind, name = experiment.tree.region_of(path).kind, experiment.tree.name(path)
        which = (
            _NO_COST if kind is RegionKind.MPI else _NO_MODEL if counted[path] else _NOT_COUNTED.get(kind, _NOT_BUILT)
        )
        own = groups.setdefault(which, {})
        own[name] = own.get(name, 0.0) + seconds
    notes = []
    for (what, advice), seconds_of in groups.items():
        share = sum(seconds_of.values()) / total
        if share >= _WITHOUT_EFFORT:
            names = sorted(seconds_of, key=lambda name: -seconds_of[name])
            several = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
            notes.append(NO_EFFORT(share=f"{share:.0%}", what=what, regions=several, advice=advice))
    return tuple(notes)
