# SPDX-License-Identifier: Apache-2.0
"""Archives and raw folders from strangers, through the commands: a result or one clear error, within limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from .commands import check_case
from .hostile import experiment

CASES, BATCH, COMMANDS = 60, 15, 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return experiment(tmp_path_factory.mktemp("whole") / "x")


@pytest.mark.parametrize("first", range(0, CASES, BATCH))
def test_every_command_survives_what_strangers_send(whole: Path, tmp_path: Path, first: int) -> None:
    refused = 0
    for seed in range(first, first + BATCH):
        scratch = tmp_path / str(seed)
        scratch.mkdir()
        refused += sum(code != 0 for code in check_case(seed, whole, scratch, COMMANDS).values())
    assert refused >= BATCH // 4  # the changes arrive
