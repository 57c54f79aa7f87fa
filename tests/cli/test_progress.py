# SPDX-License-Identifier: Apache-2.0
"""Progress messages of a campaign."""

from __future__ import annotations

import pytest
from quipu.agent.campaign.progress_lines import ProgressLines


@pytest.mark.parametrize(("finished", "text"), [(1, "1 of 1 run is"), (2, "2 of 2 runs are"), (0, "")])
def test_runs_that_are_complete_already(finished: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLines().planned([], finished)
    assert capsys.readouterr().err == (f"quipu: {text} complete already\n" if text else "")
