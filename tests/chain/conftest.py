# SPDX-License-Identifier: Apache-2.0
"""The examples built with the compiler wrappers and measured over their whole campaign, once per test session."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from complexity import Complexity, read_complexity
from example_programs import ALL, EXAMPLES, copy_sources
from patience import PATIENCE
from quipu.agent.installation import native_file
from quipu.agent.merge.experiment import OverRanks, load_experiment
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.experiment import Experiment


def quipu(*words: object, cwd: Path, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a quipu command in a separate process, with the wrappers in PATH."""
    scripts = native_file("quipu-cc").parent
    path = f"{Path(sys.executable).parent}:{scripts}:{os.environ['PATH']}"
    done = subprocess.run(
        ["quipu", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PATH": path, "COLUMNS": "160", "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
    return done


@dataclass(frozen=True, eq=False)
class Campaign:
    """One example after its campaign: folder of the sources, folder of the runs, documented complexity."""

    name: str
    folder: Path
    complexity: Complexity

    @property
    def runs(self) -> Path:
        return self.folder / f"{self.name}.runs"

    @functools.cache  # noqa: B019 - there are five
    def experiment(self, over_ranks: OverRanks = "mean") -> Experiment:
        return load_experiment(self.runs, over_ranks)

    @functools.cache  # noqa: B019
    def analysis(self) -> Analysis:
        return analyze(self.experiment())


class Campaigns:
    """Run the campaign of each example on first use, with one repetition."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: dict[str, Campaign] = {}

    def __getitem__(self, name: str) -> Campaign:
        if name not in self.done:
            target = copy_sources(name, self.folder)
            file = target / "campaign.toml"
            file.write_text(file.read_text().replace("repetitions = 2", "repetitions = 1"))
            quipu("campaign", "campaign.toml", cwd=target)
            self.done[name] = Campaign(name, target, read_complexity(EXAMPLES / name / "complexity.toml"))
        return self.done[name]


@pytest.fixture(scope="session")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Campaigns:
    return Campaigns(tmp_path_factory.mktemp("campaigns"))


@pytest.fixture(params=ALL)
def campaign(request: pytest.FixtureRequest, campaigns: Campaigns) -> Campaign:
    """Each of the four examples in turn."""
    return campaigns[request.param]
