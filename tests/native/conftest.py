"""Programs built with the compiler wrappers and run as measured processes, without a launcher."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from quipu.agent.installation import native_file
from quipu.agent.profile.reader import ProcessProfile, read_profile

PROGRAMS = Path(__file__).parent / "programs"

# LLVMs with a clang here that the pass supports; the first is the wrappers' default.
INSTALLED_LLVMS = [version for version in ("19", "16") if shutil.which(f"clang-{version}")]

Tree = dict[tuple[str, ...], dict[str, float]]


@dataclass(frozen=True)
class Measured:
    """What one process printed and counted."""

    stdout: str
    stderr: str
    returncode: int
    profile: ProcessProfile

    @property
    def tree(self) -> Tree:
        """Exclusive values by call path (displayed names), threads added up."""
        return tree_of(self.profile)


def tree_of(profile: ProcessProfile) -> Tree:
    """Exclusive values of a profile by call path (displayed names), threads added up."""
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
    """Builds and runs programs in a folder of its own."""

    folder: Path
    llvm: str

    @property
    def environment(self) -> dict[str, str]:
        """What makes the wrappers call the compilers of the LLVM."""
        return {**os.environ, "QUIPU_CC": f"clang-{self.llvm}", "QUIPU_CXX": f"clang++-{self.llvm}"}

    def build(self, source: Path | str, *options: str, wrapper: str | None = None, name: str = "program") -> Path:
        """Compile and link one source file; a name is one of tests/native/programs."""
        path = PROGRAMS / source if isinstance(source, str) else source
        if wrapper is None:
            wrapper = "quipu-c++" if path.suffix == ".cpp" else "quipu-cc"
        program = self.folder / name
        subprocess.run(
            [native_file(wrapper), *options, path, "-o", program, "-pthread"],
            check=True,
            env=self.environment,
            cwd=self.folder,
        )
        return program

    def run(self, program: Path, *arguments: str, **environment: str) -> Measured:
        """Run a program and read the one profile that it leaves."""
        (measured,) = self.run_all(program, *arguments, **environment)
        return measured

    def run_all(self, program: Path, *arguments: str, **environment: str) -> list[Measured]:
        """Run a program and read the profiles that it and its children leave."""
        raw = self.folder / f"raw-{len(list(self.folder.iterdir()))}"
        raw.mkdir()
        done = subprocess.run(
            [program, *arguments],
            env={**os.environ, "QUIPU_DIR": str(raw), **environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return [
            Measured(done.stdout, done.stderr, done.returncode, read_profile(profile))
            for profile in sorted(raw.glob("profile-*.quipu"))
        ]


def effort(run: Measured) -> dict[tuple[str, ...], dict[str, float]]:
    """Everything that must not differ between runs, by call path: all metrics but the costs."""
    kept = {metric.name for metric in run.profile.metrics if metric.is_effort}
    return {
        path: {metric: value for metric, value in values.items() if metric in kept}
        for path, values in run.tree.items()
        if path
    }


@pytest.fixture
def llvm() -> str:
    """The LLVM whose compilers build; tests that run with several name them."""
    return INSTALLED_LLVMS[0]


@pytest.fixture
def workshop(tmp_path: Path, llvm: str) -> Workshop:
    return Workshop(tmp_path, llvm)
