# SPDX-License-Identifier: Apache-2.0
"""A refinement of a small program for tests that kill it, and functions that find its complete runs."""

from __future__ import annotations

from pathlib import Path

from quipu.agent.installation import native_file
from quipu.agent.launch.raw_folder import PREFIX
from quipu.agent.merge.experiment import find_runs
from quipu.agent.merge.merged import merged_as

SOURCE = """
#include <cstdio>
#include <cstdlib>
__attribute__((noinline)) double step(double x, int n) {
    for (int i = 0; i < n; i++)
        x = x * 0.5 + 1;
    return x;
}
__attribute__((noinline)) double steps(int n) {
    double x = 0;
    for (long i = 0; i < 100L * n; i++)
        x = step(x, 2);
    return x;
}
int main(int argc, char **argv) { printf("%g\\n", steps(atoi(argv[1]))); }
"""
CAMPAIGN = """
[experiment]
name = "cycle"
build = "{compiler} -O1 program.cpp -o program"
command = "./program {{n}}"
[parameters]
n = [10, 20]
[refine]
iterations = 2
at = {{n = 40}}
"""


def runs_in(folder: Path) -> dict[str, int]:
    """Return the complete runs below a folder, with the number of the file (inode) that holds their values."""
    parts = [part for part in folder.iterdir() if part.is_dir() and not part.name.startswith(".")]
    complete = [run.path for part in parts for run in find_runs(part) if run.metadata.complete]
    return {str(path.relative_to(folder)): (path / "run.json").stat().st_ino for path in complete}


def declare(folder: Path, build: str = "") -> Path:
    (folder / "program.cpp").write_text(SOURCE)
    path = folder / "cycle.toml"
    text = CAMPAIGN.format(compiler=native_file("quipu-c++"))
    path.write_text(text.replace("build = ", f"build = {build!r}  # ") if build else text)
    return path


def lost_in(folder: Path) -> list[Path]:
    """Return raw folders below a folder that hold profiles and that no run was made of."""
    raw = [path for path in folder.glob(f"*/{PREFIX}*") if next(path.glob("profile-*"), None) is not None]
    return [path for path in raw if merged_as(path, path.parent) is None]
