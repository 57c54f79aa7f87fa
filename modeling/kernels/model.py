# SPDX-License-Identifier: Apache-2.0
"""All models of a program: T_app = Σ (T_comp + BF_mem · T_mem) + BF_comm · T_comm + T_others (Eq. 2 of the APMT
paper).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
from ..pmnf.model import Prediction
from ..rate_fit import typical
from ..short_names import IN_TEXT, shorten
from .communication import Group, GroupModel, Kind, group_models
from .computation import KernelModel, kernel_models
from .counts import THRESHOLD_E
from .growth import Growth, Method, growths, summed
from .identify import SHARE, Kernel, identify, times_of
from .variables import Variables, variables_of
from .waiting import Waiting, fit_waiting

NANOSECONDS = 1e9
"""The clock where none is known: a cycle is a nanosecond then."""


@dataclass(frozen=True)
class ProgramModel:
    """The models of a program.

    clock: what cycles are counted in, Hz; `clock_known`, or else nanoseconds. blocking: BF_comm, the part of the time
    of messages that is not hidden, by the network of the machine; None where none was measured. waits: by name of the
    group. others: T_others, the start and the end of MPI, which is no part of the program. ranges: measured, by
    parameter.
    """

    name: str
    parameters: tuple[str, ...]
    variables: Variables
    kernels: tuple[KernelModel, ...]
    groups: tuple[GroupModel, ...]
    waits: Mapping[str, Waiting]
    others: Growth | None
    clock: float
    clock_known: bool
    blocking: float | None
    ranges: tuple[tuple[float, float], ...]
    method: Method
    notes: tuple[str, ...]

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
        kernels = tuple(
            KernelPrediction(model, model.compute(point), model.memory(point), model.unexplained(point))
            for model in self.kernels
        )
        computation = sum(kernel.total.value for kernel in kernels)
        processes = point[self.variables.processes] if self.variables.processes else 1.0
        nothing = Prediction(0.0, 0.0, 0.0, False)

        def waiting(group: Group) -> Prediction:
            known = group.name in self.waits and not group.absence.holds(point)
            return self.waits[group.name].at(processes, computation) if known else nothing

        groups = tuple(GroupPrediction(own, own.transfer(point), waiting(own.group)) for own in self.groups)
        others = self.others.at(point) if self.others is not None else nothing
        return ProgramPrediction(dict(point), kernels, groups, others)


@dataclass(frozen=True)
class KernelPrediction:
    """Seconds of a rank in a kernel: T_comp, BF_mem · T_mem, and what no counts explain."""

    model: KernelModel
    compute: Prediction
    memory: Prediction
    unexplained: Prediction

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.model.kernel

    @property
    def total(self) -> Prediction:
        """Their sum."""
        return summed((self.compute, self.memory, self.unexplained))


@dataclass(frozen=True)
class GroupPrediction:
    """Seconds of a rank in operations of MPI: of the network, and waiting for others."""

    model: GroupModel
    transfer: Prediction
    waiting: Prediction

    @property
    def total(self) -> Prediction:
        """Their sum."""
        return summed((self.transfer, self.waiting))


@dataclass(frozen=True)
class ProgramPrediction:
    """A program at a point. others: start and end of MPI, no part of the total."""

    point: Mapping[str, float]
    kernels: tuple[KernelPrediction, ...]
    groups: tuple[GroupPrediction, ...]
    others: Prediction

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
) -> ProgramModel:
    """Return the models of all kernels and of communication of an experiment.

    clock: Hz, if it is known from the measurement; else that of the machine. processes, size, frequency: names of
    parameters.
    share: from which share of the time on a function is a kernel.
    Raises ModelingError if there are too few profiles, or no time was measured.
    """
    variables = variables_of(experiment, processes, size, frequency)
    kernels = identify(experiment, variables, share, method)
    times = times_of(experiment, method)
    cycles = clock or (machine.clock if machine is not None else None)
    models = kernel_models(experiment, variables, kernels, times, cycles or NANOSECONDS, machine, method)
    network = machine.ping_pong() if machine is not None else None
    groups = group_models(experiment, variables, times, method, network)
    computation = sum((model.counts.time for model in models), np.zeros(experiment.configurations))
    waits = {}
    if method == "quipu":
        for group in groups:
            if group.group.kind is Kind.OTHER:
                continue
            found = fit_waiting(experiment, variables, group, computation)
            if found is not None:
                waits[group.group.name] = found
    ranges = tuple(
        (float(low), float(high))
        for low, high in zip(experiment.points.min(axis=0), experiment.points.max(axis=0), strict=True)
    )
    return ProgramModel(
        experiment.name,
        experiment.parameters,
        variables,
        models,
        groups,
        waits,
        _others(experiment, variables, method),
        cycles or NANOSECONDS,
        cycles is not None,
        _blocking(groups, machine),
        ranges,
        method,
        _notes(experiment, variables, models, machine, np.asarray(times.any(axis=0))),
    )


def _others(experiment: Experiment, variables: Variables, method: Method) -> Growth | None:
    """Return T_others, the time of the start and the end of MPI ("fitting from P", Table 2): no problem has a say."""
    outside = experiment.tree.start_and_end
    if not outside.any():
        return None
    times = typical(experiment.values["time"])[outside].sum(axis=0)
    ranks = Variables(variables.processes, None, ())
    return growths(experiment, ranks, times[None], False, method)[0] if times.any() else None


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
