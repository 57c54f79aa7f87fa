# SPDX-License-Identifier: Apache-2.0
"""The largest heap of a rank, predicted from the bytes that call paths hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import HELD, PEAK, CallTree, Experiment, Region, RegionKind
from quipu.modeling.heap import largest_heap
from quipu.modeling.metrics import FURTHER, METRICS

POINTS = np.array([(p, n) for p in (1.0, 2.0, 4.0, 8.0) for n in (1000.0, 2000.0, 3000.0, 4000.0)])
P, N = POINTS.T
FIELD, BUFFER, INIT = 8 * N, 16 * P, np.full_like(N, 5000.0)


def experiment() -> Experiment:
    """Return a program that holds a field, a buffer per rank, and what MPI needs."""
    kinds = {"main": RegionKind.FUNCTION, "field": RegionKind.FUNCTION, "buffer": RegionKind.FUNCTION}
    regions = (
        *(Region(name, name, kind) for name, kind in kinds.items()),
        Region("MPI_Init", "MPI_Init", RegionKind.MPI),
    )
    tree = CallTree(regions, np.arange(4), np.array([-1, 0, 0, 0]))
    nothing = np.zeros_like(N)
    held = np.stack([nothing, FIELD, BUFFER, INIT])[:, :, None]
    peak = np.stack([nothing, INIT + FIELD, INIT + FIELD + BUFFER, INIT])[:, :, None]
    values = {HELD: held, PEAK: peak, "visits": np.ones_like(held)}
    metrics = {name: {**METRICS, **FURTHER}[name] for name in values}
    return Experiment("heap", ("p", "n"), POINTS, tree, metrics, values)


def test_the_parts_and_the_start_of_mpi_add_up() -> None:
    found = largest_heap(analyze(experiment()), {"p": 64.0, "n": 8000.0})
    assert found is not None
    assert found.value == pytest.approx(8 * 8000 + 16 * 64 + 5000, rel=0.01)
    assert found.lower <= found.value <= found.upper


def test_another_moment_becomes_the_largest() -> None:
    whole = experiment()
    field, vectors = INIT + FIELD + 50_000, INIT + FIELD + N  # a buffer of the construction, vectors of the solver
    nothing = np.zeros_like(N)
    held = np.stack([nothing, FIELD + 50_000, nothing, INIT])[:, :, None]
    peak = np.stack([nothing, field, vectors, INIT])[:, :, None]
    values = {HELD: held, PEAK: peak, "visits": np.ones_like(held)}
    scale = 16  # so that at each point the heap is within a tenth of the largest
    values[HELD], values[PEAK] = (
        values[name] + (scale * FIELD)[:, None] * np.array([0, 1, part, 0])[:, None, None]
        for name, part in ((HELD, 0), (PEAK, 1))
    )
    found = largest_heap(analyze(replace(whole, values=values)), {"p": 64.0, "n": 100_000.0})
    assert found is not None
    assert found.value == pytest.approx((scale + 1) * 8 * 100_000 + 100_000 + 5000, rel=0.01)
    assert found.upper >= found.value


def test_without_parts_the_largest_call_path_says_it() -> None:
    whole = experiment()
    alone = replace(whole, values={name: whole.values[name] for name in (PEAK, "visits")})
    found = largest_heap(analyze(alone), {"p": 8.0, "n": 4000.0})
    assert found is not None
    assert found.value == pytest.approx(8 * 4000 + 16 * 8 + 5000, rel=0.02)


def test_without_memory_there_is_none() -> None:
    whole = experiment()
    alone = replace(whole, values={"visits": whole.values["visits"]}, metrics={"visits": whole.metrics["visits"]})
    assert largest_heap(analyze(alone), {"p": 8.0, "n": 4000.0}) is None
