# SPDX-License-Identifier: Apache-2.0
"""Counts of valgrind belong to the Python functions that caused them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from quipu.agent.counters.cachegrind import Cachegrind
from quipu.agent.counters.callgrind import Costs, read_callgrind
from quipu.agent.counters.python_paths import PythonPath, costs_of_python, prefix_of, read_paths
from quipu.agent.counters.reuse import Reuse
from quipu.agent.counters.source import Wanted
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import CallTree, Region, RegionKind

PATHS = """0\t-1\t0\t<module>\tapp.py
1\t0\t3\tmain\tapp.py
2\t1\t7\tSolver.step\tapp.py
3\t2\t1\tadd\tlibrary.py
a\t-1\t9\tother\tapp.py
"""
FILE = """version: 1
creator: callgrind-3.19.0
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw

fn=(1) quipu_python_path_0000
0 1
cfn=(2) _PyEval_EvalFrameDefault
calls=1 0
0 999 99
fn=(2)
0 500 50
cfn=(3) quipu_python_path_0001
calls=1 0
0 900 90
cfn=(7) DOUBLE_add
calls=4 0
0 800 80
fn=(3)
cfn=(2)
calls=1 0
0 900 90
fn=(4) quipu_python_path_0002
cfn=(2)
calls=20 0
0 700 70
fn=(5) quipu_python_path_0003
cfn=(2)
calls=5 0
0 40 4
fn=(6) PMPI_Send'send_of_module'quipu_python_path_0002'_PyEval_EvalFrameDefault'quipu_python_path_0001
0 10 1
cfn=(8) mca_send
calls=2 0
0 50 5
fn=(9) MPI_Send'PMPI_Allreduce'quipu_python_path_0002
0 6 1
fn=(7)
0 800 80
"""


def of_python(name: str, file: str, line: int) -> Region:
    return Region(name, name, RegionKind.PYTHON, file, line)


REGIONS = (
    of_python("__main__.<module>", "app.py", 0),
    of_python("__main__.main", "app.py", 3),
    of_python("__main__.Solver.step", "app.py", 7),
    Region("MPI_Send", "MPI_Send", RegionKind.MPI),
    Region("kernel", "kernel"),
)
TREE = CallTree(REGIONS[:4], np.array([0, 1, 2, 3]), np.array([-1, 0, 1, 2]))


def counted(folder: Path, text: str = FILE) -> Costs:
    (folder / "counted").write_text(text)
    return read_callgrind(folder / "counted")


def known(folder: Path, text: str = PATHS) -> dict[int, PythonPath]:
    (folder / "known").write_text(text)
    return read_paths(folder / "known")


def test_a_function_costs_what_those_that_it_calls_do_not(tmp_path: Path) -> None:
    values, problems = costs_of_python(TREE, counted(tmp_path), known(tmp_path))
    # library.py's function is no call path of the tree, so it is part of its caller.
    assert values[:, 0].tolist() == [1000 - 900, 900 - 700, 700 - 60, 60]
    assert values[:, 1].tolist() == [9, 20, 64, 6]
    assert not problems


def test_functions_that_call_compiled_regions_are_not_counted(tmp_path: Path) -> None:
    tree = CallTree(REGIONS, np.array([0, 1, 2, 3, 4]), np.array([-1, 0, 1, 2, 2]))
    values, problems = costs_of_python(tree, counted(tmp_path), known(tmp_path))
    assert values[:, 0].tolist() == [100, 200, 0, 60, 0]
    assert len(problems) == 1 and "Solver.step" in problems[0]


def test_same_names_in_other_files_are_other_functions(tmp_path: Path) -> None:
    values, _ = costs_of_python(TREE, counted(tmp_path), known(tmp_path, PATHS.replace("7\tSolver", "8\tSolver")))
    assert values[:, 0].tolist() == [100, 900, 0, 0]


@pytest.mark.parametrize("text", ["0\t-1\n", "0\tx\t1\tf\tapp.py\n", "1\t0\t1\tf\tapp.py\n"])
def test_damaged_files_are_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match="known"):
        known(tmp_path, text)


def test_a_run_is_collected_by_its_call_paths(tmp_path: Path) -> None:
    (script,) = Cachegrind().shims(tmp_path, python=True)
    assert "export QUIPU_PYTHON_PATHS=" in script and "objcopy" not in script
    (compiled,) = Cachegrind().shims(tmp_path)
    assert "python*) copy=$program ;;" in compiled  # a copy of an interpreter does not find its modules
    (tmp_path / "callgrind-0-10").write_text(FILE)
    (tmp_path / prefix_of("callgrind-0-10")).write_text(PATHS)
    assert Cachegrind().collect(tmp_path, TREE, Wanted()).values["cpu_instructions"].tolist() == [[100, 200, 640, 60]]
    (tmp_path / prefix_of("callgrind-0-10")).write_text("nothing")
    assert Cachegrind().collect(tmp_path, TREE, Wanted()).problems
    for number, text in enumerate(Reuse().shims(tmp_path, python=True)):
        assert f"paths-reuse{number}-$rank-" in text
        (tmp_path / f"reuse{number}-0-10").write_text(FILE)
        (tmp_path / prefix_of(f"reuse{number}-0-10")).write_text(PATHS)
    found = Reuse().collect(tmp_path, TREE, Wanted()).values
    assert found["cpu_instructions"].tolist() == [[100, 200, 640, 60]]
    assert found["accesses"].tolist() == [[9, 20, 64, 6]]
