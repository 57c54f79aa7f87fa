# SPDX-License-Identifier: Apache-2.0
"""Kernels: messages by network times for their size, and waiting separate from computation."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.kernels import model_program
from quipu.modeling.kernels.limits import limit_of_group
from quipu.modeling.kernels.model import ProgramModel
from quipu.modeling.kernels.other_machine import moved
from quipu.modeling.machine import Cache, Machine, Network, Timed, from_document, to_document

GHZ = 1e9
TREE = CallTree(
    (
        Region("main", "main"),
        Region("sweep", "sweep"),
        Region("MPI_Sendrecv", "MPI_Sendrecv", RegionKind.MPI),
        Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
    ),
    np.arange(4),
    np.array([-1, 0, 0, 0]),
)


def seconds(size: float) -> float:
    """A network that sends messages of more than 16 KiB only after the receiver answered."""
    return 1e-6 + 1e-10 * size + (8e-6 if size > 16384 else 0.0)


def network(factor: float = 1.0) -> Network:
    sizes = (8, 1024, 4096, 16384, 16448, 65536, 262144)
    return Network("ping-pong", 2, 5e-6, 2e-10, tuple(Timed(size, factor * seconds(size)) for size in sizes))


def machine(*networks: Network) -> Machine:
    return Machine("here", "a processor", 2, GHZ, GHZ, (Cache(1, 32768, 64, 8, 1, 1e-9),), 1e-7, network=networks)


def halo(p: FloatArray, hidden: FloatArray | float = 0.6, wait: FloatArray | float = 0.0) -> Experiment:
    """20 messages per rank whose sizes fall with p; a part of their time is hidden. The barrier waits as given."""
    one = np.ones_like(p)
    work = 1e9 / p
    sent = 20 * 1048576 / p
    transfer = np.array([20 * seconds(size) for size in (sent / 20).tolist()])
    time = np.stack([0 * one, work / GHZ, (1 - hidden) * transfer, 1e-6 * np.log2(p) + wait])
    values = {
        "time": time,
        "wait_time": np.stack([0 * one, 0 * one, 0 * one, one * wait]),
        "instructions": np.stack([one, work, 0 * one, 0 * one]),
        "visits": np.stack([one, one, 20 * one, one]),
        "bytes_sent": np.stack([0 * one, 0 * one, sent, 8 * one]),
        "messages_sent": np.stack([0 * one, 0 * one, 20 * one, one]),
        "comm_size": np.stack([0 * one, 0 * one, p, p]),
    }
    metrics = {
        name: Metric(name, "1", "cost" if "time" in name else "effort", "max" if name == "comm_size" else "sum")
        for name in values
    }
    columns = {name: rows[:, :, None] for name, rows in values.items()}
    return Experiment("halo", ("p",), p[:, None], TREE, metrics, columns)


FEW, TARGET = np.array([4.0, 8, 16]), 512.0


def group_at(model: ProgramModel, name: str, p: float = TARGET) -> tuple[float, float]:
    """Return what the formula of a group says of its transfer, and its waiting."""
    found = next(group for group in model.at({"p": p}).groups if name in group.model.group.name)
    return found.model.transfer({"p": p}), found.waiting.value


def test_a_network_takes_what_was_measured_for_a_size() -> None:
    measured = network()
    assert measured.seconds(1) == pytest.approx(seconds(8))
    assert measured.seconds(2048) == pytest.approx(seconds(2048))
    assert measured.seconds(1e6) == pytest.approx(seconds(1e6))
    assert Network("ping-pong", 2, 1e-6, 1e-10).seconds(1e6) == pytest.approx(1.01e-4)
    document = to_document(machine(measured))
    assert from_document(document, "m.json").network == (measured,)
    document["network"][0]["times"][0]["bytes"] = 2000
    with pytest.raises(FormatError, match="sizes of ping-pong must rise"):
        from_document(document, "m.json")


def test_small_messages_take_what_the_network_takes_for_them() -> None:
    few, true = halo(FEW), halo(np.array([TARGET])).values["time"][2, 0, 0]
    assert group_at(model_program(few, machine(network())), "Sendrecv")[0] == pytest.approx(true, rel=0.01)
    # The line through large messages has the answer of the receiver in each of them.
    assert group_at(model_program(few, machine()), "Sendrecv")[0] > 3 * true
    # What is hidden may differ by some tenths.
    scattered = halo(FEW, np.array([0.5, 0.65, 0.6]))
    model = model_program(scattered, machine(network()))
    assert group_at(model, "Sendrecv")[0] == pytest.approx(true, rel=0.2)


def test_what_limits_messages_is_their_size_there() -> None:
    model = model_program(halo(FEW), machine(network()))

    def cause(p: float) -> str:
        found = next(group for group in model.at({"p": p}).groups if "Sendrecv" in group.model.group.name)
        return limit_of_group(found, {"p": p}).cause

    assert cause(8.0) == "volume"  # 128 KiB
    assert cause(4096.0) == "latency"  # 256 bytes


def test_messages_that_do_not_go_with_the_network_keep_a_model_of_their_own() -> None:
    def symbols(experiment: Experiment) -> list[str]:
        model = model_program(experiment, machine(network()))
        columns = next(group.columns for group in model.groups if "Sendrecv" in group.group.name)
        return [column.symbol for column in columns]

    assert symbols(halo(FEW)) == ["seconds of the network"]
    assert symbols(halo(FEW, np.array([0.9, 0.5, 0.0])))[0] == "messages"


def test_messages_on_another_network_take_its_times() -> None:
    here, there = machine(network()), machine(network(3.0))
    model = model_program(halo(FEW), here)
    assert group_at(moved(model, here, there), "Sendrecv")[0] == pytest.approx(3 * group_at(model, "Sendrecv")[0])


def test_waiting_that_stays_is_no_multiple_of_computation_that_is_divided() -> None:
    # Beside computation that falls with 1/p, a constant is also exactly (0 + c·p) · computation.
    model = model_program(halo(FEW, wait=np.array([3.0e-3, 3.1e-3, 2.9e-3])), machine())
    assert group_at(model, "Allreduce")[1] == pytest.approx(3e-3, rel=0.05)
