# SPDX-License-Identifier: Apache-2.0
"""Run the command line in a separate process, or in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from patience import PATIENCE
from quipu.agent.cli.main import run_command_line

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))  # the writer of profiles

from .documents import expect_document
from .runs import write_experiment


@dataclass(frozen=True)
class Answer:
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str


Quipu = Callable[..., Answer]


@pytest.fixture
def quipu(tmp_path: Path) -> Quipu:
    """Run `quipu` with arguments in a temporary folder."""

    def run(*arguments: object, **environment: str) -> Answer:
        added = {"COLUMNS": "100", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": os.pathsep.join(sys.path), **environment}
        done = subprocess.run(
            [sys.executable, "-c", "from quipu.agent.cli.main import main; main()", *map(str, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            cwd=tmp_path,
            env={**os.environ, **added},
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        expect_document(arguments, done.stdout)
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def quipu_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Quipu:
    """Run `quipu` with arguments in this process, which is faster; the folder is a temporary one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")  # as in a pipe; workers of pytest have those of a terminal

    def run(*arguments: object) -> Answer:
        code = run_command_line([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        expect_document(arguments, printed.out)
        return Answer(code, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of 25 configurations with 2 repetitions each. Tests only read it."""
    return write_experiment(tmp_path_factory.mktemp("experiment") / "heat")
