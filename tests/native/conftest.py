# SPDX-License-Identifier: Apache-2.0
"""Programs built with the compiler wrappers and run as measured processes, without a launcher."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from patience import PATIENCE
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import ProcessProfile, read_profile

PROGRAMS = Path(__file__).parent / "programs"

# Installed versions of LLVM that the pass supports; the first one is the default of the wrappers.
INSTALLED_LLVMS = [version for version in ("19", "18", "16") if shutil.which(f"clang-{version}")]

ENDS_WITH = {"control_flow.cpp": 7}
"""Exit codes of the programs in tests/native/programs, if they are not 0."""

MANY = 60 * 41
"""Calls of `walk(40)` in programs/many_paths.h."""

Tree = dict[tuple[str, ...], dict[str, float]]


@dataclass(frozen=True)
class Measured:
    """The output and the counts of one process."""

    stdout: str
    stderr: str
    returncode: int
    profile: ProcessProfile

    @property
    def tree(self) -> Tree:
        """Return exclusive values by call path (displayed names), summed over threads."""
        return tree_of(self.profile)


def tree_of(profile: ProcessProfile) -> Tree:
    """Return exclusive values of a profile by call path (displayed names), summed over threads."""
    tree: Tree = defaultdict(lambda: defaultdict(float))
    names: list[tuple[str, ...]] = []
    for node, (parent, region) in enumerate(zip(profile.parent, profile.region, strict=True)):
        above = names[int(parent)] if parent >= 0 else ()
        names.append((*above, profile.regions[int(region)].display) if region else above)
        for metric, values in profile.values.items():
            tree[names[-1]][metric] += float(values[node])
    return tree


@dataclass(frozen=True)
class Workshop:
    """Build and run programs in a separate folder. built: folder with the built programs of tests/native/programs."""

    folder: Path
    llvm: str
    built: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which the wrappers call the compilers of this LLVM."""
        return {**os.environ, "QUIPU_CC": f"clang-{self.llvm}", "QUIPU_CXX": f"clang++-{self.llvm}"}

    def build(self, source: Path | str, *options: str, wrapper: str | None = None, name: str = "program") -> Path:
        """Compile and link a source file. A string names a file in tests/native/programs."""
        path = PROGRAMS / source if isinstance(source, str) else source
        if wrapper is None:
            wrapper = "quipu-c++" if path.suffix == ".cpp" else "quipu-cc"
        program = self.folder / name
        command = [str(native_file(wrapper)), *options, str(path), "-pthread"]
        if not path.is_relative_to(PROGRAMS):
            self._compile(command, program)
            return program
        kept = self.built / hashlib.sha256("\0".join([self.llvm, *command]).encode()).hexdigest()
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=self.built) as place:  # workers may build at the same time
                self._compile(command, Path(place) / name)
                (Path(place) / name).replace(kept)
        program.unlink(missing_ok=True)
        program.hardlink_to(kept)
        return program

    def _compile(self, command: list[str], program: Path) -> None:
        subprocess.run([*command, "-o", program], check=True, env=self.environment, cwd=self.folder)

    def run(self, program: Path, *arguments: str, ends_with: int = 0, **environment: str) -> Measured:
        """Run a program that ends with this exit code and read the one profile that it leaves."""
        (measured,) = self.run_all(program, *arguments, ends_with=ends_with, **environment)
        return measured

    def run_all(self, program: Path, *arguments: str, ends_with: int = 0, **environment: str) -> list[Measured]:
        """Run a program that ends with this exit code and read the profiles that it and its children leave."""
        raw = self.folder / f"raw-{len(list(self.folder.iterdir()))}"
        raw.mkdir()
        done = subprocess.run(
            [program, *arguments],
            env={**os.environ, "QUIPU_DIR": str(raw), **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == ends_with, done.stderr
        return [
            Measured(done.stdout, done.stderr, done.returncode, read_profile(profile))
            for profile in sorted(raw.glob("profile-*.quipu"))
        ]


def clock_library(workshop: Workshop) -> Path:
    """Build the clock of programs/slow_lookup.c, to be linked before all other libraries."""
    clock = workshop.folder / "clock.so"
    source = PROGRAMS / "slow_lookup.c"
    subprocess.run([f"clang-{workshop.llvm}", "-shared", "-fPIC", "-o", clock, source], check=True)
    return clock


def visits_of(profile: ProcessProfile, initial: str) -> float:
    """Return the visits of all functions whose names begin with `initial`."""
    return sum(values["visits"] for path, values in tree_of(profile).items() if path and path[-1].startswith(initial))


def raw_folder(workshop: Workshop) -> Path:
    return Path(tempfile.mkdtemp(prefix="raw-", dir=workshop.folder))


def profiles_of(
    raw: Path, *command: str | Path, limit: Callable[[], None] | None = None, **environment: str
) -> tuple[subprocess.CompletedProcess[str], list[ProcessProfile]]:
    """Run a measured program, with the limits that `limit` sets, and read the profiles that it leaves."""
    done = subprocess.run(
        command,
        env={**os.environ, "QUIPU_DIR": str(raw), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        preexec_fn=limit,
    )
    return done, [read_profile(path) for path in sorted(raw.glob("profile-*.quipu"))]


def effort(run: Measured) -> dict[tuple[str, ...], dict[str, float]]:
    """Return the values that must be equal in all runs, by call path: all metrics except costs."""
    kept = {metric.name for metric in run.profile.metrics if metric.is_effort}
    return {
        path: {metric: value for metric, value in values.items() if metric in kept}
        for path, values in run.tree.items()
        if path
    }


@pytest.fixture
def llvm() -> str:
    """Return the version of LLVM; tests for several versions override it."""
    return INSTALLED_LLVMS[0]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for programs that are built once; all workers of pytest-xdist share it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "programs"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def workshop(tmp_path: Path, llvm: str, built: Path) -> Workshop:
    return Workshop(tmp_path, llvm, built)
