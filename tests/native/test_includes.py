"""Native files include each other in no circle: a file and its header count as one."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2]
FOLDERS = ["agent/runtime", "agent/interpreter", "llvm_pass", "llvm_pass/wrapper", "mpi_wrap/native"]

WRAPPERS = [path for path in sorted((SOURCES / "mpi_wrap" / "native").glob("*.c")) if path.name[:6] != "reduce"]


def included(path: Path) -> list[str]:
    return re.findall(r'^#include "(.*\.h)"', path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_circle(folder: str) -> None:
    here = SOURCES / folder
    graph: dict[Path, set[Path]] = {}
    for path in sorted(here.rglob("*.[ch]*")):
        known = {(path.parent / name).resolve().with_suffix("") for name in included(path)}
        known |= {(here / name).resolve().with_suffix("") for name in included(path)}
        graph.setdefault(path.with_suffix(""), set()).update(known - {path.with_suffix("")})
    TopologicalSorter(graph).prepare()  # raises CycleError


@pytest.mark.parametrize("path", WRAPPERS, ids=lambda path: path.name)
def test_each_file_has_a_header_and_checks_it_alone(path: Path) -> None:
    assert included(path)[0] in (f"{path.stem}.h", f"{path.stem.removesuffix('_smpi')}.h")
