# SPDX-License-Identifier: Apache-2.0
"""Times of MPI as latencies, bytes over bandwidth, and waiting, with amounts that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from quipu.modeling.experiment import CallTree, FloatArray, Region, RegionKind
from quipu.modeling.times.communication import Transfer, table_amounts, transfers

CALLS = np.array([100.0, 200.0, 400.0, 800.0])
BYTES = np.array([1e5, 1e6, 1e7, 1e8])
TWO = np.full(4, 2.0)
COMPUTED = np.array([0.01, 0.08, 0.64, 5.12])


def _amounts() -> FloatArray:
    return np.array([CALLS, CALLS, BYTES, COMPUTED]).T


def _likeliest(seconds: FloatArray) -> Transfer:
    return max(transfers(seconds[:, None], _amounts(), TWO), key=lambda own: own.ln_weight)


@pytest.mark.parametrize(
    ("seconds", "grows"),
    [(5e-6 * CALLS, 2.0), (1e-9 * BYTES, 10.0), (0.05 * COMPUTED, 8.0)],
    ids=["latency", "bandwidth", "waiting"],
)
def test_time_grows_like_what_takes_it(seconds: FloatArray, grows: float) -> None:
    more = _amounts()[-1] * np.array([2.0, 2.0, 10.0, 8.0])
    mean, deviation = _likeliest(seconds).at(more, 2.0)
    assert abs(mean - math.log(seconds[-1] * grows)) < 1.645 * deviation
    assert mean == pytest.approx(math.log(seconds[-1] * grows), abs=0.75)


def test_a_constant_operation_stays_constant() -> None:
    """One call to open a file takes two milliseconds, whatever the program computes."""
    once = np.array([np.ones(4), np.zeros(4), np.zeros(4), COMPUTED]).T
    found = max(transfers(np.full((4, 1), 2e-3), once, TWO), key=lambda own: own.ln_weight)
    mean, deviation = found.at(once[-1] * np.array([1.0, 1.0, 1.0, 8.0]), 2.0)
    assert abs(mean - math.log(2e-3)) < 1.645 * deviation
    assert mean == pytest.approx(math.log(2e-3), abs=0.75)


def test_uncertainty_grows_with_the_computation_and_the_ranks() -> None:
    found = _likeliest(5e-6 * CALLS)
    deviations = [found.at(_amounts()[-1] * more, 2.0)[1] for more in (1.0, 2.0, 8.0)]
    assert deviations == sorted(deviations)
    assert found.at(_amounts()[-1], 64.0)[1] > deviations[0]


def test_nothing_measured_has_no_posterior() -> None:
    assert transfers(np.full((4, 2), np.nan), _amounts(), TWO) == []
    assert transfers(np.full((4, 2), 1e-3), np.zeros((4, 4)), TWO) == []


def test_amounts_are_those_of_table_one() -> None:
    names = ("MPI_Send", "MPI_Allreduce", "MPI_Barrier")
    regions = (Region("main", "main"), *(Region(name, name, RegionKind.MPI) for name in names))
    tree = CallTree(regions, np.arange(4), np.array([-1, 0, 0, 0]))
    each = np.ones((4, 2)) * np.array([1.0, 8.0])
    counts = {"visits": np.full((4, 2), 3.0), "bytes_sent": 10.0 * each, "bytes_received": 0.0 * each}
    found = table_amounts(tree, {**counts, "comm_size": each}, [1, 2, 3])
    np.testing.assert_allclose(found[1], [[3, 3], [0, 3], [10, 80]])
    np.testing.assert_allclose(found[2], [[3, 3], [0, 9], [10, 80]])
    np.testing.assert_allclose(found[3], [[3, 3], [0, 9], [0, 0]])
