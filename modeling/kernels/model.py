# SPDX-License-Identifier: Apache-2.0
"""The time of a program by kernels, and what it is: T_app = Σ (T_comp + BF_mem · T_mem) + BF_comm · T_comm + T_others
(Eq. 2 of the APMT paper).

Times are those of the models of all call paths, as `quipu predict` has them: a kernel takes the sum of its call paths.
The formulas of the paper say which part of that is computation, memory and messages. By the method of the paper they
are the prediction themselves.
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
from .growth import Method, growths
from .identify import SHARE, Kernel, KernelKind, computing, identify, times_of
from .variables import Variables, variables_of

NANOSECONDS = 1e9
"""The clock where none is known: a cycle is a nanosecond then."""
_NOTHING = Prediction(0.0, 0.0, 0.0, False)


@dataclass(frozen=True)
class ProgramModel:
    """The models of a program.

    clock: what cycles are counted in, Hz; `clock_known`, or else nanoseconds. blocking: BF_comm, the part of the time
    of messages that is not hidden, by the network of the machine; None where none was measured. others: T_others, the
    start and the end of MPI, which is no part of the program. ranges: measured, by parameter. models: of all call
    paths; None by the method of the paper. here: the same on the machine that was measured on, where this is another
    one.
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
    models: Models | None
    notes: tuple[str, ...]
    here: ProgramModel | None = None

    @property
    def method(self) -> Method:
        """Whose prediction it is."""
        return "paper" if self.models is None else "quipu"

    def clock_at(self, point: Mapping[str, float]) -> float | None:
        """Return what cycles take at a point, Hz; None if no clock is known."""
        if self.variables.frequency is not None:
            return point[self.variables.frequency]
        return self.clock if self.clock_known else None

    def at(self, point: Mapping[str, float]) -> ProgramPrediction:
        """Return the prediction at a point. Raises ModelingError if it does not fit the parameters."""
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
        whole = None
        if self.models is not None and here is None:
            whole = self.models.at("time", point).total
        return ProgramPrediction(dict(point), kernels, groups, others, whole)

    def text(self, paths: tuple[int, ...], point: Mapping[str, float]) -> str:
        """Return the models of the time of call paths; "" by the method of the paper."""
        return "" if self.models is None else self.models.text("time", paths, point)

    def _kernel(
        self, model: KernelModel, point: Mapping[str, float], here: KernelPrediction | None
    ) -> KernelPrediction:
        """Return the time of a kernel: that of its call paths, divided as the formulas say."""
        parts = model.compute(point), model.memory(point), model.unexplained(point)
        if self.models is None:
            return KernelPrediction(model, *parts, summed(parts))
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
        """Return the time of operations of MPI: that of their call paths, and the waiting in it."""
        if self.models is None:
            transfer = model.transfer(point)
            return GroupPrediction(model, transfer, _NOTHING, transfer)
        if here is not None:
            before = here.model.transfer(point).value
            transfer = product(here.transfer, model.transfer(point).value / before if before > 0 else 1.0)
            return GroupPrediction(model, transfer, here.waiting, summed([transfer, here.waiting]))
        total = self.models.sum("time", model.group.paths, point)
        waited = self.models.sum("wait_time", model.group.paths, point)
        waiting = product(total, min(waited.value / total.value, 1.0)) if total.value > 0 else _NOTHING
        return GroupPrediction(model, _without(total, waiting), waiting, total)


def _without(whole: Prediction, part: Prediction) -> Prediction:
    """Return the rest of a time, as uncertain relative to it as the whole."""
    rest = max(whole.value - part.value, 0.0)
    return product(whole, rest / whole.value) if whole.value > 0 else _NOTHING


def _divided(whole: Prediction, first: Prediction, second: Prediction) -> tuple[Prediction, Prediction]:
    """Return two parts of a time, which are to each other as these are."""
    share = first.value / (first.value + second.value) if first.value + second.value > 0 else 1.0
    return product(whole, share), product(whole, 1.0 - share)


@dataclass(frozen=True)
class KernelPrediction:
    """Seconds of a rank in a kernel: T_comp, BF_mem · T_mem, what no counts explain, and their sum."""

    model: KernelModel
    compute: Prediction
    memory: Prediction
    unexplained: Prediction
    total: Prediction

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.model.kernel


@dataclass(frozen=True)
class GroupPrediction:
    """Seconds of a rank in operations of MPI: of the network, waiting for others, and their sum."""

    model: GroupModel
    transfer: Prediction
    waiting: Prediction
    total: Prediction


@dataclass(frozen=True)
class ProgramPrediction:
    """A program at a point. others: start and end of MPI, no part of the total. whole: the total, if it is known."""

    point: Mapping[str, float]
    kernels: tuple[KernelPrediction, ...]
    groups: tuple[GroupPrediction, ...]
    others: Prediction
    whole: Prediction | None

    @property
    def compute(self) -> Prediction:
        """Σ T_comp."""
        return summed([kernel.compute for kernel in self.kernels])

    @property
    def memory(self) -> Prediction:
        """Σ BF_mem · T_mem."""
        return summed([kernel.memory for kernel in self.kernels])

    @property
    def unexplained(self) -> Prediction:
        """Time of functions that no counts explain: none are known, or the functions take longer."""
        return summed([kernel.unexplained for kernel in self.kernels])

    @property
    def communication(self) -> Prediction:
        """BF_comm · T_comm: operations of messages and collective ones, with waiting."""
        return summed([group.total for group in self.groups if group.model.group.kind is not Kind.OTHER])

    @property
    def other(self) -> Prediction:
        """Operations of MPI that move no data (communicators, queries), with files."""
        return summed([group.total for group in self.groups if group.model.group.kind is Kind.OTHER])

    @property
    def total(self) -> Prediction:
        """T_app of a rank in seconds, without the start and the end of MPI."""
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
    method: Method = "quipu",
    frequency: str | None = None,
    analysis: Analysis | None = None,
) -> ProgramModel:
    """Return the models of all kernels and of communication of an experiment.

    clock: Hz, if it is known from the measurement; else that of the machine. processes, size, frequency: names of
    parameters.
    share: from which share of the time on a function is a kernel.
    analysis: the models of the experiment (`analyze`), which are made if they are not given. method "paper": without.
    Raises ModelingError if there are too few profiles, or no time was measured.
    """
    models = None
    if method != "paper":
        analysis = with_machine(experiment, analysis or analyze(experiment), machine, clock, processes, size, frequency)
        models = Models.of(experiment, analysis)
    experiment = experiment.of_time
    variables = variables_of(experiment, processes, size, frequency)
    kernels = identify(experiment, variables, share, method)
    times = times_of(experiment, method)
    cycles = clock or (machine.clock if machine is not None else None)
    found = kernel_models(experiment, variables, kernels, times, cycles or NANOSECONDS, machine, models)
    network = machine.ping_pong() if machine is not None else None
    groups = group_models(experiment, variables, times, models, network)
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
        _others(experiment, variables, models),
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
    """Return the models of an experiment with what a description of its machine says of memory.

    Where accesses were counted by the level that served them or by distances of reuse, they take the time that the
    machine was measured to take. All else stays as it is. The other arguments are those of `model_program`.
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


def _others(experiment: Experiment, variables: Variables, models: Models | None) -> Amount | None:
    """Return T_others, the time of the start and the end of MPI ("fitting from P", Table 2): no problem has a say."""
    outside = np.flatnonzero(experiment.tree.start_and_end)
    times = typical(experiment.values["time"])[outside].sum(axis=0)
    if not times.any():
        return None
    if models is not None:
        return Counted(models, ("time",), tuple(outside.tolist()))
    return growths(experiment, Variables(variables.processes, None, ()), times[None])[0]


def _blocking(groups: tuple[GroupModel, ...], machine: Machine | None) -> float | None:
    """Return BF_comm: measured time in messages over what the network takes for them (Table 2); None if unknown.

    A program spends its time in exactly one place here, so that what it hides behind computation is not in the measured
    time of its messages: (T_mapp - T_mcomp) / T_mcomm with T_mcomm by Hockney's model of the machine.
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
    """Return notes on the models. used: the configurations whose times are in the models, shape (C,)."""
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
