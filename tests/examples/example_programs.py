# SPDX-License-Identifier: Apache-2.0
"""Build and run the examples in copies of their folders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launching import YIELDING
from patience import PATIENCE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COMPILED = ("heat", "cg", "samplesort", "wavefront")
ALL = (*COMPILED, "jacobi_py")

_OPEN_MPI = {**YIELDING, "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Program:
    """An example that can be run: the words that start it, and the folder to start it in."""

    name: str
    folder: Path
    command: tuple[str, ...]

    def run(
        self, ranks: int, *arguments: object, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run under mpirun; the caller looks at the exit status."""
        words = ["mpirun", "-n", str(ranks), *self.command, *(str(argument) for argument in arguments)]
        return run(words, self.folder, environment)

    def run_alone(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run as a single process without mpirun."""
        return run([*self.command, *(str(argument) for argument in arguments)], self.folder)

    def result(self, ranks: int, *arguments: object, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Run, require a verified result, and return the fields of the line that the program prints."""
        done = self.run(ranks, *arguments, environment=environment)
        assert done.returncode == 0, f"{self.name} {arguments} on {ranks} ranks:\n{done.stdout}{done.stderr}"
        lines = done.stdout.splitlines()
        assert len(lines) == 1, done.stdout
        assert lines[0].endswith(" verified"), done.stdout
        return dict(re.findall(r"(\S+)=(\S+)", lines[0]))


def run(
    words: list[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder and return what it printed."""
    # If make runs the tests, its variables must not reach the make that a test runs.
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    full = {**inherited, **_OPEN_MPI, **(environment or {})}
    return subprocess.run(words, cwd=folder, env=full, capture_output=True, text=True, check=False, timeout=PATIENCE)


def copy_sources(name: str, folder: Path) -> Path:
    """Copy the files of an example, without what builds in place left behind, to a new folder."""
    target = folder / name
    ignored = shutil.ignore_patterns("*.o", "*.d", ".compiler", name, "build", "*.runs", "__pycache__")
    shutil.copytree(EXAMPLES / name, target, ignore=ignored)
    return target


def build(name: str, folder: Path, *make_arguments: str, environment: Mapping[str, str] | None = None) -> Program:
    """Build a copy of an example with make, without warnings."""
    return make(name, copy_sources(name, folder), *make_arguments, environment=environment)


def make(name: str, target: Path, *make_arguments: str, environment: Mapping[str, str] | None = None) -> Program:
    """Build the example that was copied to `target`; jacobi_py needs no building."""
    if name == "jacobi_py":
        return Program(name, target, (sys.executable, "jacobi.py"))
    done = run(["make", *make_arguments], target, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr
    return Program(name, target, (f"./{name}",))


def campaign_arguments(name: str, n: int) -> list[str]:
    """Return the arguments that campaign.toml gives the program at n."""
    words = campaign_command(name).split()
    program = next(i for i, word in enumerate(words) if word in {f"./{name}", "jacobi.py"})
    return [word.format(n=n) for word in words[program + 1 :]]


def campaign_command(name: str) -> str:
    """Return the command of an example's campaign.toml, placeholders and all."""
    content = tomllib.loads((EXAMPLES / name / "campaign.toml").read_text(encoding="utf-8"))
    command = content["experiment"]["command"]
    assert isinstance(command, str)
    return command


def campaign_values(name: str) -> dict[str, list[int]]:
    """Return the parameter values of an example's campaign.toml."""
    content = tomllib.loads((EXAMPLES / name / "campaign.toml").read_text(encoding="utf-8"))
    return {parameter: list(values) for parameter, values in content["parameters"].items()}
