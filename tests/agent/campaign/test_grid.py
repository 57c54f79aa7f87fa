# SPDX-License-Identifier: Apache-2.0
"""Declare process grids in campaign files, and suggest runs that distinguish their extents."""

from __future__ import annotations

from pathlib import Path

import pytest
from heat_campaign import HEAT, declare
from quipu.agent.campaign.advice import advice
from quipu.modeling.errors import FormatError

WITHOUT = HEAT.replace("p = [2, 1]", "p = [4, 2, 1]")
GRID = (
    WITHOUT
    + """
[grid]
parameter = "p"
dimensions = 2
rule = "balanced, smallest first"
"""
)


def test_a_declared_process_grid(tmp_path: Path) -> None:
    campaign = declare(tmp_path, GRID)
    assert campaign.grid is not None
    assert [tuple(campaign.grid.at(p)) for p in (1, 2, 8)] == [(1, 1), (1, 2), (2, 4)]
    assert declare(tmp_path, WITHOUT).grid is None
    assert "measure p = 6 (2×3), too" in advice(campaign)
    assert advice(declare(tmp_path, GRID.replace("[4, 2, 1]", "[1, 2, 4, 6]"))) == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('parameter = "p"', 'parameter = "q"', "parameter: should be the number of ranks, one of: n, p"),
        ("dimensions = 2", "dimensions = 4", "dimensions: should be a whole number from 2 to 3"),
        ("smallest first", "by hand", "rule: should be one of: 'balanced'"),
        ("rule", "rules", "rules: is unknown; [grid] has dimensions, parameter, rule"),
    ],
)
def test_mistakes_in_a_process_grid(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(FormatError, match=r"heat\.toml:1[4-9]: ") as caught:
        declare(tmp_path, GRID.replace(old, new))
    assert message in str(caught.value)
