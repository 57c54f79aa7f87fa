# SPDX-License-Identifier: Apache-2.0
"""Read the table of delays as it was written, and reject invalid content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from quipu.agent.archive.delay_table import read_delays, write_delays
from quipu.agent.archive.run import DelayTable
from quipu.modeling.errors import FormatError

TABLE = DelayTable(
    np.array([3, 3, 4]), np.array([-1, 1, 2]), np.array([0, 0, 7]), np.array([0, 1, 0]), np.array([0.5, 1.5, 0.25])
)


def test_delays_come_back(tmp_path: Path) -> None:
    assert read_delays(tmp_path, 5) is None
    write_delays(tmp_path, TABLE)
    found = read_delays(tmp_path, 5)
    assert found is not None
    for name in ("operation", "cause", "rank", "thread", "seconds"):
        assert getattr(found, name).tolist() == getattr(TABLE, name).tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        DelayTable(*map(np.array, ([5], [0], [0], [0], [1.0]))),
        DelayTable(*map(np.array, ([0], [-2], [0], [0], [1.0]))),
        DelayTable(*map(np.array, ([0], [0], [-1], [0], [1.0]))),
        DelayTable(*map(np.array, ([0], [0], [0], [-1], [1.0]))),
        DelayTable(*map(np.array, ([0], [0], [0], [0], [-1.0]))),
        DelayTable(*map(np.array, ([0], [0], [0], [0], [np.nan]))),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, wrong: DelayTable) -> None:
    write_delays(tmp_path, wrong)
    with pytest.raises(FormatError):
        read_delays(tmp_path, 5)
