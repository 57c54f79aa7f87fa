# SPDX-License-Identifier: Apache-2.0
"""Communication: Hockney's model of messages, a·log P + b·s + c of collectives (section 3.3, Table 2), and waiting.

Table 2 of the APMT paper: T_p2p = a·s_tot + b, T_collective = a·log(P) + b·s_tot + c, T_comm their sum over all
operations, of which BF_comm counts. Operations that belong together (all messages that one function exchanges, and
their completion) are one group. Where waiting was separated from transfer, it has a model of its own: it is the time
that others compute longer, not that of the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.optimize import nnls

from ..absence import PRESENT, Absence, absence_of
from ..experiment import Experiment, FloatArray, RegionKind
from ..machine import Network
from ..mpi_operations import operation_of
from ..pmnf.model import Prediction
from ..priors.communication import scale_values
from ..priors.table import Scale, row_of
from ..rate_fit import typical
from .growth import Growth, Method, growths, product, summed
from .transfers import Transfers, seconds_of
from .variables import Variables

# Relative residual up to which BF_comm counts as constant, as the paper takes it: what a program hides of its messages
# differs by this with their sizes, while a line through few sizes is off by several times beyond them. Waiting that is
# less than this part of the time everywhere is no model of its own. Both by benchmarks/apmt_accuracy.py --part strong.
_STEADY, _LITTLE = 0.25, 0.1
_TIME = "time"  # the symbol of a column that is the time itself
_NORMAL_90 = 1.645  # half of a 90 % interval, in standard deviations


class Kind(Enum):
    """How time in MPI is modeled."""

    POINT_TO_POINT = "point-to-point"
    COLLECTIVE = "collective"
    OTHER = "other"


@dataclass(frozen=True)
class Volume:
    """What a group of operations moves, per rank and configuration (C,).

    time: 0 where it does not count. sizes: processes of the communicator.
    """

    time: FloatArray
    waiting: FloatArray
    calls: FloatArray
    messages: FloatArray
    bytes: FloatArray
    sizes: FloatArray


@dataclass(frozen=True)
class Group:
    """Operations of MPI that are modeled together: all point-to-point ones below a caller, or one collective one.

    absence: where none of them is executed.
    """

    name: str
    kind: Kind
    paths: tuple[int, ...]
    operation: str
    absence: Absence = PRESENT


@dataclass(frozen=True)
class Column:
    """seconds: per unit; amount: how many units there are; symbol: what it is called in formulas.

    Of `Transfers` a unit is a second of the network, and seconds are BF_comm.
    """

    symbol: str
    seconds: float
    amount: Growth | Transfers


@dataclass(frozen=True)
class GroupModel:
    """The model of a group: the sum of its columns. uncertainty: half of the 90 % interval, as part of it."""

    group: Group
    volume: Volume
    columns: tuple[Column, ...]
    bytes: Growth
    residual: float
    uncertainty: float

    def transfer(self, point: Mapping[str, float]) -> Prediction:
        """Return the seconds of a rank in these operations, without waiting where that was measured."""
        parts = [product(c.amount.at(point), c.seconds, self.uncertainty) for c in self.columns]
        return summed(parts)

    @property
    def by_time(self) -> bool:
        """Whether the model is that of times alone: nothing is known of what the operations move."""
        return all(column.symbol == _TIME for column in self.columns)

    @property
    def text(self) -> str:
        """The model as a formula."""
        return " + ".join(f"{c.seconds:.3g} s · ({c.symbol} = {c.amount})" for c in self.columns) or "0"


def groups_of(experiment: Experiment) -> tuple[Group, ...]:
    """Return the groups of all MPI call paths but the start and the end of MPI, in the order of the tree."""
    tree = experiment.tree
    found: dict[tuple[int, str], list[int]] = {}
    for path in range(len(tree)):
        region = tree.region_of(path)
        if region.kind is not RegionKind.MPI or tree.start_and_end[path]:
            continue
        operation = operation_of(region.name)
        kind = operation.kind if operation is not None else "uncounted"
        if kind in ("point-to-point", "completion", "persistent", "one-sided"):
            found.setdefault((int(tree.parent[path]), Kind.POINT_TO_POINT.name), []).append(path)
        elif kind == "collective":
            found[path, Kind.COLLECTIVE.name] = [path]
        else:
            found.setdefault((-2, Kind.OTHER.name), []).append(path)
    groups = []
    for (at, name), paths in found.items():
        of = Kind[name]
        if of is Kind.OTHER:
            groups.append(Group("other operations of MPI", of, tuple(paths), ""))
        elif of is Kind.COLLECTIVE:
            groups.append(Group(tree.label(at), of, tuple(paths), tree.region_of(at).name))
        else:
            names = ", ".join(dict.fromkeys(tree.name(path) for path in paths))
            where = f"{tree.label(at)}->" if at >= 0 else ""
            groups.append(Group(f"{where}{{{names}}}" if len(paths) > 1 else f"{where}{names}", of, tuple(paths), ""))
    return tuple(replace(group, absence=absence_of(experiment, group.paths)) for group in groups)


def volume_of(experiment: Experiment, group: Group, times: FloatArray) -> Volume:
    """Return what a group moves. times: (call paths, C)."""
    paths = list(group.paths)

    def largest(name: str) -> FloatArray:
        values = experiment.values.get(name)
        shape = (len(paths), experiment.configurations)
        return np.zeros(shape) if values is None else np.asarray(np.nan_to_num(values[paths]).max(axis=2))

    waiting = np.zeros((len(paths), experiment.configurations))
    if "wait_time" in experiment.values:
        waiting = np.minimum(typical(experiment.values["wait_time"])[paths], times[paths])
        if np.all(waiting.sum(axis=0) <= _LITTLE * times[paths].sum(axis=0)):
            waiting[:] = 0.0
    return Volume(
        time=times[paths].sum(axis=0),
        waiting=waiting.sum(axis=0),
        calls=largest("visits").sum(axis=0),
        messages=np.maximum(largest("messages_sent").sum(axis=0), largest("messages_received").sum(axis=0)),
        bytes=np.maximum(largest("bytes_sent").sum(axis=0), largest("bytes_received").sum(axis=0)),
        sizes=np.maximum(largest("comm_size").max(axis=0), 1.0),
    )


def group_models(
    experiment: Experiment,
    variables: Variables,
    times: FloatArray,
    method: Method = "quipu",
    network: Network | None = None,
) -> tuple[GroupModel, ...]:
    """Return the models of all groups that take time. times: seconds per rank, (call paths, C).

    method "paper": a·s_tot + b, and a·log(P) + b·s_tot + c, with waiting, b and c constants. "quipu": a per message,
    and of collectives a and c per call, a times the steps that their algorithms take (Table I of the priors). network:
    of messages between two processes; messages take a part of what it was measured to take for their size, unless a
    and b of their own fit better.
    """
    result = []
    for group in groups_of(experiment):
        volume = volume_of(experiment, group, times)
        if volume.time.any():
            fitted = _fit(experiment, variables, group, volume, method)
            if method == "quipu" and network is not None and network.times and group.kind is Kind.POINT_TO_POINT:
                fitted = _by_network(fitted, experiment, variables, network)
            result.append(fitted)
    return tuple(result)


def _by_network(fitted: GroupModel, experiment: Experiment, variables: Variables, network: Network) -> GroupModel:
    """Return the model with BF_comm · T_comm of a network in place of a and b where that fits as well or better."""
    volume = fitted.volume
    amounts = seconds_of(network, volume.messages, volume.bytes)
    time = volume.time - volume.waiting
    use = (time > 0) & (amounts > 0)
    if not use.any() or np.any((time > 0) & ~use):
        return fitted
    (seconds,), found = _least_squares([amounts], time)
    errors = (found - time)[use] / time[use]
    if float(np.sqrt(np.mean(errors**2))) > max(fitted.residual, _STEADY):
        return fitted
    absence = fitted.group.absence
    messages, moved = growths(
        experiment, variables, np.stack([volume.messages, volume.bytes]), True, absences=[absence] * 2
    )
    column = Column("seconds of the network", seconds, Transfers(messages, moved, network))
    residual, uncertainty = _deviations(errors, 1)
    return replace(fitted, columns=(column,), residual=residual, uncertainty=uncertainty)


def _deviations(errors: FloatArray, coefficients: int) -> tuple[float, float]:
    """Return `residual` and `uncertainty` of a model that leaves these relative errors."""
    if not errors.size:
        return 0.0, 0.0
    squares = float(errors @ errors)
    freedom = max(errors.size - coefficients, 1)
    return (squares / errors.size) ** 0.5, _NORMAL_90 * (squares / freedom) ** 0.5


def _fit(experiment: Experiment, variables: Variables, group: Group, volume: Volume, method: Method) -> GroupModel:
    own = np.ones_like(volume.time)
    time = volume.time if method == "paper" else volume.time - volume.waiting
    columns: dict[str, FloatArray]
    if group.kind is Kind.OTHER:
        return _of_time(experiment, variables, group, volume, volume.time, method)
    if group.kind is Kind.POINT_TO_POINT:
        columns = {"messages": volume.messages, "bytes": volume.bytes}
        if method == "paper":
            columns = {"bytes": volume.bytes, "1": own}
        elif not volume.messages.any():
            columns = {"bytes": volume.bytes, "calls": volume.calls}
    elif method == "paper":
        columns = {"log2(P)": np.log2(np.maximum(volume.sizes, 1.0)), "bytes": volume.bytes, "1": own}
    else:
        row = row_of(group.operation)
        latency, transfer = (row.latency, row.transfer) if row is not None else (Scale.LOG, Scale.ONE)
        steps = scale_values(latency if latency is not Scale.ONE else Scale.LOG, volume.sizes)
        by = scale_values(transfer or Scale.ONE, volume.sizes)
        columns = {"calls·steps": volume.calls * steps, "bytes": volume.bytes * by, "calls": volume.calls}
    used = {symbol: values for symbol, values in columns.items() if values.any()}
    if not used:
        return _of_time(experiment, variables, group, volume, time, method)
    kept = _without_copies(used)
    seconds, found = _least_squares(list(kept.values()), time)
    rows = np.stack([*kept.values(), volume.bytes])
    *amounts, moved = growths(experiment, variables, rows, True, method, [group.absence] * len(rows))
    errors = (found - time)[time > 0] / time[time > 0]
    parts = tuple(
        Column(symbol, value, amount) for symbol, value, amount in zip(kept, seconds, amounts, strict=True) if value > 0
    )
    return GroupModel(group, volume, parts, moved, *_deviations(errors, len(parts)))


def _of_time(
    experiment: Experiment, variables: Variables, group: Group, volume: Volume, time: FloatArray, method: Method
) -> GroupModel:
    """Return the model of operations of which nothing but times is known, (C,)."""
    (growth,) = growths(experiment, variables, time[None], False, method, [group.absence])
    return GroupModel(group, volume, (Column(_TIME, 1.0, growth),), growth, 0.0, 0.0)


def _without_copies(columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Leave out columns that are in proportion to one before: their coefficients would be any division of the sum."""
    kept: dict[str, FloatArray] = {}
    for symbol, values in columns.items():
        norm = values / np.linalg.norm(values)
        if not any(np.allclose(norm, other / np.linalg.norm(other), rtol=1e-6, atol=1e-9) for other in kept.values()):
            kept[symbol] = values
    return kept


def _least_squares(columns: Sequence[FloatArray], time: FloatArray) -> tuple[list[float], FloatArray]:
    """Return coefficients that are not negative by relative least squares, and what they give."""
    use = time > 0
    if not columns or not use.any():
        return [0.0] * len(columns), np.zeros_like(time)
    matrix = np.stack(columns, axis=1)
    relative = matrix[use] / time[use][:, None]
    scale = np.maximum(np.abs(relative).max(axis=0), 1e-300)
    found, _ = nnls(relative / scale, np.ones(int(use.sum())))
    return (found / scale).tolist(), np.asarray(matrix @ (found / scale))
