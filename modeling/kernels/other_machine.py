# SPDX-License-Identifier: Apache-2.0
"""Predict a program on another machine, from measurements on one machine and the descriptions of both.

Computation has the same instructions and, by assumption, the same CPI, so its time is scaled by the core frequencies.
Memory accesses take the latencies of the other machine for each level, or its times by reuse distance. Messages take α
and β of the other network. If accesses by level were not counted for a kernel, its interval contains the smallest and
the largest of the ratios of clocks and latencies.
"""

from __future__ import annotations

from dataclasses import replace

from ..counters import LEVELS
from ..errors import ModelingError
from ..machine import Machine, Network
from .communication import Column, GroupModel
from .computation import KernelModel, Part
from .model import ProgramModel
from .reuse import Costs
from .transfers import Transfers


def moved(model: ProgramModel, here: Machine, there: Machine) -> ProgramModel:
    """Return the models of a program on another machine. here: the measured machine.

    Raises ModelingError if the unit of the measured cycles is not the clock of `here`.
    """
    if model.variables.frequency is not None:
        raise ModelingError(
            f"{model.name}: the clock frequency is a parameter here: give the frequency of the "
            "other machine to --at instead of --on"
        )
    if not model.clock_known:
        raise ModelingError(
            f"{model.name}: neither the runs nor the file of --machine contain the clock frequency, so cycles cannot "
            "be converted to time: measure the machine again with quipu machine"
        )
    kernels = tuple(_kernel(kernel, here, there) for kernel in model.kernels)
    groups = tuple(_group(group, here, there) for group in model.groups)
    notes = [*model.notes, f"predicted for {there.host or 'another machine'} from {here.host or 'this one'}"]
    if here.processor != there.processor:
        notes.append(f"the same CPI is assumed of {there.processor} and {here.processor}")
    if here.ping_pong() is None or there.ping_pong() is None:
        notes.append("the network of one machine was not measured: times of communication are the measured times")
    return replace(model, kernels=kernels, groups=groups, notes=tuple(notes), here=model)


def _kernel(model: KernelModel, here: Machine, there: Machine) -> KernelModel:
    """Scale the time of instructions by the frequencies, and use the latencies of the other machine."""
    ratio = here.frequency / there.frequency
    ratios = [there.latency(level) / here.latency(level) for level in LEVELS if here.latency(level) > 0]
    doubt = max((abs(other / ratio - 1) for other in ratios), default=0.0)
    costs = Costs.of(there.reach)
    parts = tuple(_part(part, ratio, costs) for part in model.parts)
    latencies = {level: there.latency(level) for level in LEVELS} if model.latencies else {}
    known = all(part.levels or (part.reuse is not None and costs is not None) for part in model.parts)
    return replace(model, parts=parts, latencies=latencies, doubt=0.0 if known else doubt)


def _part(part: Part, ratio: float, costs: Costs | None) -> Part:
    """Scale the time of instructions, and use the times by reuse distance of the other machine, if measured."""
    fitted, reuse = part.fitted, part.reuse
    fitted = replace(fitted, cpi=fitted.cpi * ratio, per_unit=fitted.per_unit * ratio)
    return replace(part, fitted=fitted, reuse=replace(reuse, costs=costs) if reuse and costs else reuse)


def _group(model: GroupModel, here: Machine, there: Machine) -> GroupModel:
    """Scale seconds per message, call and byte by the ratios of α and β."""
    if model.by_time:
        return model
    name = model.group.operation or "ping-pong"
    first, second = _network(here, name), _network(there, name)
    if first is None or second is None:
        return model
    columns = tuple(_column(column, first, second) for column in model.columns)
    return replace(model, columns=columns)


def _network(machine: Machine, operation: str) -> Network | None:
    return next((entry for entry in machine.network if entry.operation == operation), machine.ping_pong())


def _column(column: Column, first: Network, second: Network) -> Column:
    if isinstance(column.amount, Transfers):
        return replace(column, amount=replace(column.amount, network=second))
    per_byte = column.symbol == "bytes"
    before, after = (first.beta, second.beta) if per_byte else (first.alpha, second.alpha)
    return replace(column, seconds=column.seconds * after / before) if before > 0 else column
