# SPDX-License-Identifier: Apache-2.0
"""Model communication: Hockney's model of messages and collectives, and waiting (section 3.3, Table 2).

Table 2 of the APMT paper: T_p2p = a·s_tot + b, T_collective = a·log(P) + b·s_tot + c. T_comm is the sum over all
operations, of which the part BF_comm is not hidden. Operations that belong together (all messages of one function, and
their completion) are one group. If waiting was separated from transfer, it has a separate model, because it depends on
the computation of other ranks and not on the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.optimize import nnls

from ..experiment import Experiment, FloatArray, RegionKind
from ..machine import Network
from ..mpi_operations import operation_of
from ..priors.communication import scale_values
from ..priors.table import Scale, row_of
from ..rate_fit import typical
from .amounts import Models
from .transfers import Transfers, Units, seconds_of

# BF_comm counts as constant up to this relative residual. The hidden part of messages differs by this amount between
# sizes; the error of a line through few sizes is several times larger beyond these sizes. benchmarks/apmt_accuracy.py
# --part strong
_STEADY = 0.25
_TIME = "time"  # the symbol of a column that is the time itself


class Kind(Enum):
    """How the time in MPI is modeled."""

    POINT_TO_POINT = "point-to-point"
    COLLECTIVE = "collective"
    OTHER = "other"


@dataclass(frozen=True)
class Volume:
    """The data that a group of operations moves, per rank and configuration (C,).

    time: 0 at configurations whose time is not used. sizes: processes of the communicator.
    """

    time: FloatArray
    waiting: FloatArray
    calls: FloatArray
    messages: FloatArray
    bytes: FloatArray
    sizes: FloatArray


@dataclass(frozen=True)
class Group:
    """MPI operations that are modeled together: all messages of a caller, or one collective operation."""

    name: str
    kind: Kind
    paths: tuple[int, ...]
    operation: str


@dataclass(frozen=True)
class Column:
    """One column of a formula.

    seconds: per unit; amount: number of units; symbol: name in formulas. For `Transfers`, a unit is one second of the
    network, and `seconds` is BF_comm.
    """

    symbol: str
    seconds: float
    amount: Units


@dataclass(frozen=True)
class GroupModel:
    """The formula of a group: the sum of its columns. residual: root mean square of the relative residuals."""

    group: Group
    volume: Volume
    columns: tuple[Column, ...]
    residual: float

    def transfer(self, point: Mapping[str, float]) -> float:
        """Return the seconds of a rank in these operations, without waiting if waiting was measured."""
        return sum(column.seconds * column.amount.at(point) for column in self.columns)

    @property
    def by_time(self) -> bool:
        """Return whether the model only uses times, because the amounts of data are unknown."""
        return all(column.symbol == _TIME for column in self.columns)


def groups_of(experiment: Experiment) -> tuple[Group, ...]:
    """Return the groups of all MPI call paths except the start and the end of MPI, in the order of the tree."""
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
    return tuple(groups)


def volume_of(experiment: Experiment, group: Group, times: FloatArray) -> Volume:
    """Return the data that a group moves. times: (call paths, C)."""
    paths = list(group.paths)

    def largest(name: str) -> FloatArray:
        values = experiment.values.get(name)
        shape = (len(paths), experiment.configurations)
        return np.zeros(shape) if values is None else np.asarray(np.nan_to_num(values[paths]).max(axis=2))

    waiting = np.zeros((len(paths), experiment.configurations))
    if "wait_time" in experiment.values:
        waiting = np.minimum(typical(experiment.values["wait_time"])[paths], times[paths])
    return Volume(
        time=times[paths].sum(axis=0),
        waiting=waiting.sum(axis=0),
        calls=largest("visits").sum(axis=0),
        messages=np.maximum(largest("messages_sent").sum(axis=0), largest("messages_received").sum(axis=0)),
        bytes=np.maximum(largest("bytes_sent").sum(axis=0), largest("bytes_received").sum(axis=0)),
        sizes=np.maximum(largest("comm_size").max(axis=0), 1.0),
    )


@dataclass(frozen=True, eq=False)
class _Volumes:
    """The data that a group moves at any point, predicted by the models of the experiment."""

    models: Models
    group: Group

    def at(self, point: Mapping[str, float]) -> Volume:
        """Return the data at a point, as arrays of one value."""

        def of(name: str) -> FloatArray:
            return np.array([self.models.sum(name, self.group.paths, point).value])

        return Volume(
            time=of("time"),
            waiting=of("wait_time"),
            calls=of("visits"),
            messages=np.maximum(of("messages_sent"), of("messages_received")),
            bytes=np.maximum(of("bytes_sent"), of("bytes_received")),
            sizes=np.maximum(of("comm_size"), 1.0),
        )


@dataclass(frozen=True, eq=False)
class _ColumnAt:
    """The amount of one column of a group at any point."""

    volumes: _Volumes
    symbol: str

    def at(self, point: Mapping[str, float]) -> float:
        """Return the amount at a point."""
        volume = self.volumes.at(point)
        if self.symbol == _TIME:
            return float(volume.time[0])
        found = _columns(self.volumes.group, volume).get(self.symbol)
        return 0.0 if found is None else float(found[0])


def group_models(
    experiment: Experiment, times: FloatArray, models: Models, network: Network | None = None
) -> tuple[GroupModel, ...]:
    """Return the formulas of all groups that take time. times: seconds per rank, (call paths, C).

    a is per message; for collectives, a and c are per call, and a is multiplied by the steps of their algorithms (Table
    I of the priors). network: the measured times of messages between two processes; the time of a message is a constant
    part of the measured time for its size, unless separate a and b fit better.
    """
    result = []
    for group in groups_of(experiment):
        volume = volume_of(experiment, group, times)
        if volume.time.any():
            fitted = _fit(group, volume, models)
            if network is not None and network.times and group.kind is Kind.POINT_TO_POINT:
                fitted = _by_network(fitted, _Volumes(models, group), network)
            result.append(fitted)
    return tuple(result)


def _by_network(fitted: GroupModel, volumes: _Volumes, network: Network) -> GroupModel:
    """Return the formula with BF_comm · T_comm of a network instead of a and b, if it fits at least as well."""
    volume = fitted.volume
    amounts = seconds_of(network, volume.messages, volume.bytes)
    time = volume.time - volume.waiting
    use = (time > 0) & (amounts > 0)
    if not use.any() or np.any((time > 0) & ~use):
        return fitted
    (seconds,), found = _least_squares([amounts], time)
    errors = (found - time)[use] / time[use]
    residual = _residual(errors)
    if residual > max(fitted.residual, _STEADY):
        return fitted
    transfers = Transfers(_ColumnAt(volumes, "messages"), _ColumnAt(volumes, "bytes"), network)
    return replace(fitted, columns=(Column("seconds of the network", seconds, transfers),), residual=residual)


def _residual(errors: FloatArray) -> float:
    """Return the root mean square of relative errors; 0 without errors."""
    return float(np.sqrt(np.mean(errors**2))) if errors.size else 0.0


def _columns(group: Group, volume: Volume) -> dict[str, FloatArray]:
    """Return the factors of a, b and c of a group, (C,) each; none if only its times are known."""
    if group.kind is Kind.OTHER:
        return {}
    if group.kind is Kind.POINT_TO_POINT:
        if volume.messages.any():
            return {"messages": volume.messages, "bytes": volume.bytes}
        return {"bytes": volume.bytes, "calls": volume.calls}
    row = row_of(group.operation)
    latency, transfer = (row.latency, row.transfer) if row is not None else (Scale.LOG, Scale.ONE)
    steps = scale_values(latency if latency is not Scale.ONE else Scale.LOG, volume.sizes)
    by = scale_values(transfer or Scale.ONE, volume.sizes)
    return {"calls·steps": volume.calls * steps, "bytes": volume.bytes * by, "calls": volume.calls}


def _fit(group: Group, volume: Volume, models: Models) -> GroupModel:
    time = volume.time - volume.waiting
    used = {symbol: values for symbol, values in _columns(group, volume).items() if values.any()}
    if not used:
        return GroupModel(group, volume, (Column(_TIME, 1.0, _ColumnAt(_Volumes(models, group), _TIME)),), 0.0)
    kept = _without_copies(used)
    seconds, found = _least_squares(list(kept.values()), time)
    errors = (found - time)[time > 0] / time[time > 0]
    parts = tuple(
        Column(symbol, value, _ColumnAt(_Volumes(models, group), symbol))
        for symbol, value in zip(kept, seconds, strict=True)
        if value > 0
    )
    return GroupModel(group, volume, parts, _residual(errors))


def _without_copies(columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Leave out columns that are proportional to an earlier column, because their coefficients are not determined."""
    kept: dict[str, FloatArray] = {}
    for symbol, values in columns.items():
        norm = values / np.linalg.norm(values)
        if not any(np.allclose(norm, other / np.linalg.norm(other), rtol=1e-6, atol=1e-9) for other in kept.values()):
            kept[symbol] = values
    return kept


def _least_squares(columns: Sequence[FloatArray], time: FloatArray) -> tuple[list[float], FloatArray]:
    """Return nonnegative coefficients by relative least squares, and the fitted values."""
    use = time > 0
    if not columns or not use.any():
        return [0.0] * len(columns), np.zeros_like(time)
    matrix = np.stack(columns, axis=1)
    relative = matrix[use] / time[use][:, None]
    scale = np.maximum(np.abs(relative).max(axis=0), 1e-300)
    found, _ = nnls(relative / scale, np.ones(int(use.sum())))
    return (found / scale).tolist(), np.asarray(matrix @ (found / scale))
