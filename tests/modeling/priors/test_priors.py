# SPDX-License-Identifier: Apache-2.0
"""Priors: Table I row by row, skeletons of computation, and models of time of a whole program."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Model
from quipu.modeling.priors import PathModel
from quipu.modeling.priors.requests import requested_bytes
from quipu.modeling.priors.table import ANY_DATA, Bytes, Scale, row_of

from ..conftest import NAMES, MakeProgram, exact

ALPHA, BETA, GAMMA = 2e-6, 3e-10, 5e-10


def _time_models(experiment: Experiment) -> tuple[PathModel, ...]:
    return analyze(experiment).models("time")


def _operation(name: str, noise: float = 0.0, processes: float = 1.0, seed: int = 0) -> tuple[Experiment, FloatArray]:
    """Return an experiment with one MPI operation called 10 times, whose time is its row of the table.

    n·8 bytes go in and come out on every rank; communicators have p·`processes` members. What a completion waits for
    is posted beside it.
    """
    grid = np.array([(p, n) for p in (2.0, 4, 8, 16, 32) for n in (1000.0, 4000, 16000, 64000)])
    p, n = grid.T
    size = p * processes
    row = row_of(name) or ANY_DATA
    volume = 80 * n * (size if row.bytes in (Bytes.ALL_SENT, Bytes.ALL_RECEIVED) else 1)
    scale = {Scale.ONE: 1.0, Scale.LOG: np.log2(size), Scale.SHARE: (size - 1) / size, Scale.OTHERS: size - 1}
    time = 10 * ALPHA * scale[row.latency] * np.ones_like(p)
    if row.transfer:
        time = time + BETA * volume * scale[row.transfer]
    if row.reduction:
        time = time + GAMMA * volume * scale[row.reduction]
    tree = CallTree((Region("main", "main"), Region(name, name, RegionKind.MPI)), np.array([0, 1]), np.array([-1, 0]))
    random = np.random.default_rng(seed)
    values = {
        "visits": np.stack([np.ones_like(p), 10 * np.ones_like(p)]),
        "bytes_sent": np.stack([0 * n, 80 * n]),
        "bytes_received": np.stack([0 * n, 80 * n]),
        "comm_size": np.stack([0 * p, size]),
        "time": np.stack([1e-3 * np.ones_like(p), time * (1 + noise * random.uniform(-1, 1, len(p)))]),
    }
    metrics = {m: Metric(m, "1", "effort") for m in values} | {"time": Metric("time", "s", "cost")}
    if row.bytes is Bytes.REQUESTED:
        post = Region("MPI_Irecv", "MPI_Irecv", RegionKind.MPI)
        tree = CallTree((*tree.regions, post), np.array([0, 1, 2]), np.array([-1, 0, 0]))
        values = {m: np.concatenate([v, v[1:]]) for m, v in values.items()}
        values["bytes_sent"][1:], values["bytes_received"][1] = 0.0, 0.0
    return Experiment("op", ("p", "n"), grid, tree, metrics, {m: v[:, :, None] for m, v in values.items()}), time


TABLE_I = [
    "MPI_Send",
    "MPI_Recv",
    "MPI_Bcast",
    "MPI_Scatter",
    "MPI_Gather",
    "MPI_Allgather",
    "MPI_Reduce",
    "MPI_Allreduce",
]
FURTHER = [
    "MPI_Sendrecv",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Barrier",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Scatterv",
    "MPI_Gatherv",
    "MPI_Allgatherv",
    "MPI_Reduce_scatter",
    "MPI_Scan",
    "MPI_Wait",
    "MPI_Send_c",
    "MPI_Put",
]


@pytest.mark.parametrize("name", TABLE_I + FURTHER)
def test_every_row_is_recovered(name: str) -> None:
    experiment, time = _operation(name)
    entry = _time_models(experiment)[1]
    assert isinstance(entry.model, Model)
    assert entry.basis == f"table I: {name}"
    np.testing.assert_allclose(entry.model.evaluate(experiment.points), time, rtol=1e-3)
    experiment, _ = _operation(name, noise=0.1)
    noisy = _time_models(experiment)[1].model
    assert isinstance(noisy, Model)
    assert noisy.leading == entry.model.leading


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MPI_Send", "α·visits + β·B, B = 80·n [Hockney 1994]"),
        ("MPI_Bcast", "log2(p)·α·visits + β·B, B = 80·n [Chan et al. 2007]"),
        ("MPI_Gather", "log2(p)·α·visits + (p-1)/p·β·B, B = 80·p·n [Chan et al. 2007]"),
        ("MPI_Reduce", "log2(p)·α·visits + β·B + (p-1)/p·γ·B, B = 80·n [Chan et al. 2007]"),
        ("MPI_Waitall", "α·visits + β·B, B = 80·n [Hockney 1994]"),
        ("MPI_Probe", "α·visits [one latency per call]"),
    ],
)
def test_priors_explain_themselves(name: str, text: str) -> None:
    entry = _time_models(_operation(name)[0])[1]
    assert entry.prior == text


def test_waiting_behind_computation_does_not_grow_with_the_bytes() -> None:
    experiment, _ = _operation("MPI_Waitall")
    random = np.random.default_rng(1)
    experiment.values["time"][1] = 1e-4 * (1 + 0.1 * random.uniform(-1, 1, experiment.values["time"][1].shape))
    entry = _time_models(experiment)[1]
    assert isinstance(entry.model, Model)
    assert not entry.model.terms
    assert entry.prior == "α·visits [one latency per call]"


def test_requests_are_those_of_the_nearest_caller() -> None:
    """Two exchanges: one in a function, one in two functions that a third one calls; a wait without requests."""
    names = ["main", "one", "MPI_Isend", "MPI_Wait", "two", "begin", "MPI_Irecv", "end", "MPI_Waitall", "MPI_Recv"]
    parents = [-1, 0, 1, 1, 0, 4, 5, 4, 7, 5]
    regions = tuple(Region(x, x, RegionKind.MPI if "_" in x else RegionKind.FUNCTION) for x in names)
    tree = CallTree(regions, np.arange(len(names)), np.array(parents))
    sent, received = np.zeros((2, len(names), 1, 1))
    sent[2], received[6], received[9] = 5.0, 7.0, 100.0
    assert requested_bytes(tree, sent, received).ravel().tolist() == [0, 0, 0, 5, 0, 0, 0, 0, 7, 0]


def test_share_of_processes_shows_in_the_model() -> None:
    model = _time_models(_operation("MPI_Allgather")[0])[1].model
    assert isinstance(model, Model)
    assert "n·(p-1)/p" in str(model)


@pytest.mark.parametrize("name", ["MPI_Bcast", "MPI_Allgather", "MPI_Allreduce"])
def test_communicators_of_another_size(name: str) -> None:
    """A row of a process grid has half of the processes: log2(p/2), and (p/2-1)/(p/2) of the bytes."""
    experiment, time = _operation(name, processes=0.5)
    model = _time_models(experiment)[1].model
    assert isinstance(model, Model)
    np.testing.assert_allclose(model.evaluate(experiment.points)[4:], time[4:], rtol=1e-3)


def test_non_blocking_collectives_have_the_row_of_blocking_ones() -> None:
    assert row_of("MPI_Iallreduce") == row_of("MPI_Allreduce")
    assert row_of("MPI_Ialltoallv") == row_of("MPI_Alltoall")
    assert row_of("MPI_Isend_c") == row_of("MPI_Send")


@pytest.mark.parametrize("name", ["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Comm_split", "MPI_Cart_create"])
def test_operations_that_move_no_data_are_modeled_from_time_alone(name: str) -> None:
    """Constant, logarithmic and linear times come out as such; noise alone is no growth."""
    assert row_of(name) is None
    for growth, lead in ((0, (0, 0)), (1, (1, 0))):
        close = []
        for seed in range(20):
            p = np.repeat([1.0, 2, 4, 8, 16], 4)
            n = np.tile([1000.0, 4000, 16000, 64000], 5)
            time = 0.3 + 0.05 * growth * p
            tree = CallTree((Region(name, name, RegionKind.MPI),), np.array([0]), np.array([-1]))
            random = np.random.default_rng(seed)
            noisy = time[:, None] * (1 + 0.15 * random.standard_normal((20, 2)))
            values = {"visits": np.ones((1, 20, 2)), "time": noisy[None]}
            metrics = {"visits": Metric("visits", "1", "effort"), "time": Metric("time", "s", "cost")}
            points = np.stack([p, n], axis=1)
            (entry,) = _time_models(Experiment("setup", ("p", "n"), points, tree, metrics, values))
            assert entry.basis == "time only" and isinstance(entry.model, Model)
            close.append(entry.model.leading == {"p": lead, "n": (0, 0)})
            assert entry.model.at(p=256, n=64000) < 3 * (0.3 + 0.05 * growth * 256)
        assert np.mean(close) >= 0.75


def test_data_without_a_row_is_a_message() -> None:
    entry = _time_models(_operation("MPI_File_write_at")[0])[1]
    assert entry.basis == "table I: MPI_File_write_at"
    assert entry.prior.startswith("α·visits + β·B")


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.5])
def test_program_keeps_the_order_of_its_effort(make_program: MakeProgram, noise: float) -> None:
    """Even one very noisy repetition does not change the leading exponents of effort."""
    experiment = make_program(noise=noise, repetitions=1)
    entries = dict(zip(NAMES, _time_models(experiment), strict=True))
    leads = {name: e.model.leading for name, e in entries.items() if isinstance(e.model, Model)}
    assert leads["sweep"] == {"p": (0, 0), "n": (2, 0)}
    assert leads["sort"] == {"p": (0, 0), "n": (1, 1)}
    assert leads["tiny"] == {"p": (0, 0), "n": (2, 0)}
    assert leads["MPI_Barrier"] == {"p": (0, 1), "n": (0, 0)}
    assert leads["MPI_Bcast"] == {"p": (0, 1), "n": (1, 0)}
    assert leads["MPI_Isend"] == {"p": (0, 0), "n": (1, 0)}
    assert leads["MPI_Alltoallv"] == {"p": (1, 0), "n": (1, 0)}


def test_predictions_of_the_program(make_program: MakeProgram) -> None:
    entries = _time_models(make_program(noise=0.1))
    truth = exact(np.array([256.0]), np.array([12800.0]))
    for name, entry in zip(NAMES, entries, strict=True):
        assert isinstance(entry.model, Model)
        assert entry.model.at(p=256, n=12800) == pytest.approx(truth[name]["time"][0], rel=0.15), name


def test_bases(make_program: MakeProgram) -> None:
    bases = {name: entry.basis for name, entry in zip(NAMES, _time_models(make_program()), strict=True)}
    assert bases["sweep"] == "effort"
    assert bases["interpreter"] == "time only"
    assert bases["MPI_Barrier"] == "table I: MPI_Barrier"


def test_time_alone(make_program: MakeProgram) -> None:
    full = make_program(noise=0.01)
    bare = Experiment(
        "bare", full.parameters, full.points, full.tree, {"time": full.metrics["time"]}, {"time": full.values["time"]}
    )
    entries = _time_models(bare)
    assert {entry.basis for entry in entries} == {"time only"}
    assert all(isinstance(entry, PathModel) and isinstance(entry.model, Model) for entry in entries)


def test_loops_whose_blocks_cost_differently() -> None:
    """Two loops with cheap and expensive blocks: each gets a separate coefficient."""
    n = np.array([100.0, 200, 400, 800, 1600, 3200])
    tree = CallTree((Region("work", "work"),), np.array([0]), np.array([-1]))
    blocks, time = 1000 * n + n**2, 1e-6 * n + 1e-8 * n**2
    metrics = {"blocks": Metric("blocks", "1", "effort"), "time": Metric("time", "s", "cost")}
    values = {"blocks": blocks[None, :, None], "time": time[None, :, None]}
    (entry,) = _time_models(Experiment("loops", ("n",), n[:, None], tree, metrics, values))
    assert isinstance(entry.model, Model)
    assert entry.model.at(n=100000) == pytest.approx(100.1, rel=1e-6)
    assert entry.prior == "c0 + c1·n² + c2·n"


@pytest.mark.parametrize("seed", [0, 3])
def test_effort_may_take_less_time_than_noise_shows(seed: int) -> None:
    """A call takes a constant time: a fit by effort alone is 60 % off."""
    n, p = (axis.ravel() for axis in np.meshgrid([8.0, 12, 16, 20, 24], [4.0, 8, 16, 32, 64]))
    tree = CallTree((Region("work", "work"),), np.array([0]), np.array([-1]))
    noise = np.random.default_rng(seed).uniform(-0.05, 0.05, (1, n.size, 4))
    metrics = {"blocks": Metric("blocks", "1", "effort"), "time": Metric("time", "s", "cost")}
    values = {"blocks": (2 * n**3 + 4 * n**2)[None, :, None], "time": 3e-5 * (1 + noise)}
    (entry,) = _time_models(Experiment("call", ("p", "n"), np.stack([p, n], axis=1), tree, metrics, values))
    assert isinstance(entry.model, Model)
    assert entry.basis == "effort"
    np.testing.assert_allclose(entry.model.evaluate(np.array([[4.0, 8.0], [128.0, 24.0]])), 3e-5, rtol=0.04)
    assert entry.model.leading["n"] == (3, 0)
