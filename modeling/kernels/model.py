# SPDX-License-Identifier: Apache-2.0
"""The time of a program by kernels (Eq. 2 of the APMT paper).

T_app = Σ (T_comp + BF_mem · T_mem) + BF_comm · T_comm + T_others. The time of a kernel is the sum of the predictions of
its call paths, as in `quipu predict`. The formulas of the paper divide this time into computation, memory and messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..analysis import analyze
from ..catalogue import (
    MEMORY_CONTENTION,
    NO_ACCESSES,
    NO_INSTRUCTIONS,
    NO_MACHINE,
    NO_PROCESSES,
    OVERSUBSCRIBED_KERNELS,
)
from ..errors import ModelingError
from ..experiment import Experiment
from ..machine import Machine
from ..models import Analysis
from ..pmnf.model import Prediction
from ..rate_fit import typical
from ..short_names import IN_TEXT, shorten
from ..times.predictions import time_models
from .amounts import Amount, Counted, Models, product, summed
from .communication import GroupModel, Kind, group_models
from .computation import KernelModel, kernel_models
from .counts import THRESHOLD_E
from .identify import SHARE, Kernel, KernelKind, computing, identify, times_of
from .variables import Variables, variables_of

NANOSECONDS = 1e9
"""The clock if it is unknown: a cycle is then a nanosecond."""
_NOTHING = Prediction(0.0, 0.0, 0.0, False)


@dataclass(frozen=True)
class ProgramModel:
    """The models of a program.

    clock: unit of cycles in Hz, known if `clock_known`, otherwise nanoseconds. blocking: BF_comm, the part of the time
    of messages that is not hidden, for the network of the machine; None if no network was measured. others: T_others,
    the start and the end of MPI, which are not part of the program. ranges: the measured range of each parameter.
    models: the models of all call paths. here: the models for the measured machine, if these models predict for another
    machine.
    """

    name: str
    parameters: tuple[str, ...]
    variables: Variables
    kernels: tuple[KernelModel, ...]
    groups: tuple[GroupModel, ...]
    others: Amount | None
    clock: float
    clock_known: bool
    blocking: float | None
    ranges: tuple[tuple[float, float], ...]
    models: Models
    notes: tuple[str, ...]
    here: ProgramModel | None = None

    def clock_at(self, point: Mapping[str, float]) -> float | None:
        """Return the frequency of cycles at a point in Hz; None if no clock is known."""
        if self.variables.frequency is not None:
            return point[self.variables.frequency]
        return self.clock if self.clock_known else None

    def at(self, point: Mapping[str, float]) -> ProgramPrediction:
        """Return the prediction at a point. Raises ModelingError if the point does not match the parameters."""
        if set(point) != set(self.parameters):
            known = ", ".join(self.parameters) or "none"
            raise ModelingError(f"{self.name}: the point must give a value of each parameter: {known}")
        here = None if self.here is None else self.here.at(point)
        kernels = tuple(
            self._kernel(model, point, None if here is None else here.kernels[number])
            for number, model in enumerate(self.kernels)
        )
        groups = tuple(
            self._group(model, point, None if here is None else here.groups[number])
            for number, model in enumerate(self.groups)
        )
        others = self.others.at(point) if self.others is not None else _NOTHING
        whole = self.models.at("time", point).total if here is None else None
        return ProgramPrediction(dict(point), kernels, groups, others, whole)

    def text(self, paths: tuple[int, ...], point: Mapping[str, float]) -> str:
        """Return the models of the time of call paths as text."""
        return self.models.text("time", paths, point)

    def _kernel(
        self, model: KernelModel, point: Mapping[str, float], here: KernelPrediction | None
    ) -> KernelPrediction:
        """Return the time of a kernel: the sum over its call paths, divided by the formulas."""
        parts = model.compute(point), model.memory(point), model.unexplained(point)
        if here is not None:
            before = sum(part.value for part in (here.model.compute(point), here.model.memory(point)))
            ratio = (parts[0].value + parts[1].value) / before if before > 0 else 1.0
            compute, memory = _divided(product(_without(here.total, here.unexplained), ratio, model.doubt), *parts[:2])
            return KernelPrediction(model, compute, memory, parts[2], summed([compute, memory, parts[2]]))
        total = self.models.sum("time", model.kernel.paths, point)
        if not parts[0].value + parts[1].value > 0:
            return KernelPrediction(model, _NOTHING, _NOTHING, total, total)
        compute, memory = _divided(_without(total, parts[2]), *parts[:2])
        return KernelPrediction(model, compute, memory, parts[2], total)

    def _group(self, model: GroupModel, point: Mapping[str, float], here: GroupPrediction | None) -> GroupPrediction:
        """Return the time of MPI operations: the sum over their call paths, and the waiting part."""
        if here is not None:
            before = here.model.transfer(point)
            transfer = product(here.transfer, model.transfer(point) / before if before > 0 else 1.0)
            return GroupPrediction(model, transfer, here.waiting, summed([transfer, here.waiting]))
        total = self.models.sum("time", model.group.paths, point)
        waited = self.models.sum("wait_time", model.group.paths, point)
        waiting = product(total, min(waited.value / total.value, 1.0)) if total.value > 0 else _NOTHING
        return GroupPrediction(model, _without(total, waiting), waiting, total)


def _without(whole: Prediction, part: Prediction) -> Prediction:
    """Return the rest of a time, with the relative uncertainty of the whole."""
    rest = max(whole.value - part.value, 0.0)
    return product(whole, rest / whole.value) if whole.value > 0 else _NOTHING


def _divided(whole: Prediction, first: Prediction, second: Prediction) -> tuple[Prediction, Prediction]:
    """Return two parts of a time in the ratio of these two values."""
    share = first.value / (first.value + second.value) if first.value + second.value > 0 else 1.0
    return product(whole, share), product(whole, 1.0 - share)


@dataclass(frozen=True)
class KernelPrediction:
    """Seconds of a rank in a kernel: T_comp, BF_mem · T_mem, time that no counts explain, and their sum."""

    model: KernelModel
    compute: Prediction
    memory: Prediction
    unexplained: Prediction
    total: Prediction

    @property
    def kernel(self) -> Kernel:
        """Return the kernel."""
        return self.model.kernel


@dataclass(frozen=True)
class GroupPrediction:
    """Seconds of a rank in MPI operations: network, waiting, and their sum."""

    model: GroupModel
    transfer: Prediction
    waiting: Prediction
    total: Prediction


@dataclass(frozen=True)
class ProgramPrediction:
    """The prediction of a program at a point.

    others: start and end of MPI, not part of the total. whole: the total, if known.
    """

    point: Mapping[str, float]
    kernels: tuple[KernelPrediction, ...]
    groups: tuple[GroupPrediction, ...]
    others: Prediction
    whole: Prediction | None

    @property
    def compute(self) -> Prediction:
        """Return Σ T_comp."""
        return summed([kernel.compute for kernel in self.kernels])

    @property
    def memory(self) -> Prediction:
        """Return Σ BF_mem · T_mem."""
        return summed([kernel.memory for kernel in self.kernels])

    @property
    def unexplained(self) -> Prediction:
        """Return the time of functions that no counts explain."""
        return summed([kernel.unexplained for kernel in self.kernels])

    @property
    def communication(self) -> Prediction:
        """Return BF_comm · T_comm: messages and collective operations, with waiting."""
        return summed([group.total for group in self.groups if group.model.group.kind is not Kind.OTHER])

    @property
    def other(self) -> Prediction:
        """Return the time of MPI operations that move no data (communicators, queries), or access files."""
        return summed([group.total for group in self.groups if group.model.group.kind is Kind.OTHER])

    @property
    def total(self) -> Prediction:
        """Return T_app of a rank in seconds, without the start and the end of MPI."""
        if self.whole is not None:
            return self.whole
        return summed([*(kernel.total for kernel in self.kernels), *(group.total for group in self.groups)])


def model_program(
    experiment: Experiment,
    machine: Machine | None = None,
    clock: float | None = None,
    processes: str | None = None,
    size: str | None = None,
    share: float = SHARE,
    frequency: str | None = None,
    analysis: Analysis | None = None,
) -> ProgramModel:
    """Return the models of all kernels and of the communication of an experiment.

    clock: Hz, if the measurement contains it; otherwise from the machine. processes, size, frequency: names of
    parameters. share: smallest share of the time of a kernel. analysis: the models of the experiment (`analyze`); they
    are fitted if not given. Raises ModelingError if there are too few profiles, or no time was measured.
    """
    analysis = with_machine(experiment, analysis or analyze(experiment), machine, clock, processes, size, frequency)
    models = Models.of(experiment, analysis)
    experiment = experiment.of_time
    variables = variables_of(experiment, processes, size, frequency)
    kernels = identify(experiment, variables, share)
    times = times_of(experiment)
    cycles = clock or (machine.clock if machine is not None else None)
    found = kernel_models(experiment, variables, kernels, times, cycles or NANOSECONDS, machine, models)
    network = machine.ping_pong() if machine is not None else None
    groups = group_models(experiment, times, models, network)
    ranges = tuple(
        (float(low), float(high))
        for low, high in zip(experiment.points.min(axis=0), experiment.points.max(axis=0), strict=True)
    )
    return ProgramModel(
        experiment.name,
        experiment.parameters,
        variables,
        found,
        groups,
        _others(experiment, models),
        cycles or NANOSECONDS,
        cycles is not None,
        _blocking(groups, machine),
        ranges,
        models,
        _notes(experiment, variables, found, machine, np.asarray(times.any(axis=0))),
    )


def with_machine(
    experiment: Experiment,
    analysis: Analysis,
    machine: Machine | None,
    clock: float | None = None,
    processes: str | None = None,
    size: str | None = None,
    frequency: str | None = None,
) -> Analysis:
    """Return the models of an experiment, with the measured memory times of a machine.

    The time of accesses that were counted by memory level or reuse distance is computed from latencies of the machine.
    The other arguments are those of `model_program`.
    """
    if machine is None or "time" not in experiment.of_time.values:
        return analysis
    timed = experiment.of_time
    variables, models = variables_of(timed, processes, size, frequency), Models.of(experiment, analysis)
    paths = tuple(np.flatnonzero(computing(timed)).tolist())
    kernel = Kernel("all", KernelKind.REST, paths, 1.0)
    cycles = clock or machine.clock or NANOSECONDS
    (model,) = kernel_models(timed, variables, [kernel], times_of(timed), cycles, machine, models)
    if not model.explained:
        return analysis
    times = time_models(experiment, analysis.counts, analysis.exclusive, model.explained)
    return analysis if times is None else replace(analysis, times=times)


def _others(experiment: Experiment, models: Models) -> Amount | None:
    """Return T_others, the time of the start and the end of MPI."""
    outside = np.flatnonzero(experiment.tree.start_and_end)
    if not typical(experiment.values["time"])[outside].any():
        return None
    return Counted(models, ("time",), tuple(outside.tolist()))


def _blocking(groups: tuple[GroupModel, ...], machine: Machine | None) -> float | None:
    """Return BF_comm: measured time of messages / time of the network for them (Table 2); None if unknown.

    The measured time of messages does not contain what computation hides, because a rank is in one call path at a time.
    It is therefore (T_mapp - T_mcomp) of the paper. T_mcomm is Hockney's model of the machine.
    """
    network = machine.ping_pong() if machine is not None else None
    if network is None:
        return None
    spent = needed = 0.0
    for model in groups:
        if model.group.kind is Kind.POINT_TO_POINT:
            volume, use = model.volume, model.volume.time > 0
            spent += float(np.sum(volume.time - volume.waiting))
            needed += float(np.sum((network.alpha * volume.messages + network.beta * volume.bytes)[use]))
    return spent / needed if needed > 0 else None


def _notes(
    experiment: Experiment,
    variables: Variables,
    models: tuple[KernelModel, ...],
    machine: Machine | None,
    used: NDArray[np.bool_],
) -> tuple[str, ...]:
    """Return notes on the models. used: the configurations whose times the models use, shape (C,)."""
    notes = list(experiment.notes)
    if not (dedicated := experiment.dedicated).all():
        points = f"{np.count_nonzero(~dedicated)} of {len(dedicated)} configurations"
        how = "they are in the models" if used.all() else "only their counts are in the models"
        notes.append(OVERSUBSCRIBED_KERNELS(points=points, used=how))
    if variables.processes is None:
        notes.append(NO_PROCESSES())
    counted = [model for model in models if model.counts.levels or model.counts.waits is not None]
    if all(model.counts.instructions is None for model in models):
        notes.append(NO_INSTRUCTIONS())
    elif machine is None:
        notes.append(NO_MACHINE())
    elif not counted:
        notes.append(NO_ACCESSES())
    missing = [model for model in models if model.counts.criterion > THRESHOLD_E]
    if missing:
        worst = max(missing, key=lambda model: model.counts.criterion)
        name = shorten(worst.kernel.name, IN_TEXT)
        kernels = name if len(missing) == 1 else f"{len(missing)} kernels, such as {name}"
        notes.append(MEMORY_CONTENTION(kernels=kernels, part=f"{worst.counts.criterion:.1e}", limit=THRESHOLD_E))
    return tuple(notes)
