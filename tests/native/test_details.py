# SPDX-License-Identifier: Apache-2.0
"""Names of functions are in programs once, compressed; profiles have all of them."""

from __future__ import annotations

import subprocess

import pytest

from .conftest import INSTALLED_LLVMS, Workshop

FUNCTIONS = 60


@pytest.mark.parametrize("llvm", INSTALLED_LLVMS)
@pytest.mark.parametrize("kind", ["program", "library"])
def test_names_are_compressed(workshop: Workshop, llvm: str, kind: str) -> None:
    source = workshop.folder / "many.c"
    functions = "".join(
        f"__attribute__((noinline)) int a_name_that_is_long_{i}(int n) {{ return n > {i} ? n * {i + 3} : n + 1; }}\n"
        for i in range(FUNCTIONS)
    )
    calls = "".join(f"    sum += a_name_that_is_long_{i}(argc);\n" for i in range(FUNCTIONS))
    source.write_text(
        f"{functions}int main(int argc, char **argv) {{\n    volatile int sum = 0;\n{calls}return 0;\n}}\n"
    )
    position = ["-fPIC"] if kind == "library" else []
    program = workshop.build(source, "-O2", "-w", *position)
    tree = workshop.run(program).tree
    expected = {("main", f"a_name_that_is_long_{i}") for i in range(FUNCTIONS)}
    assert {path for path in tree if len(path) == 2} == expected
    assert all(tree[path]["visits"] == 1 for path in expected)
    subprocess.run(["strip", "-o", workshop.folder / "stripped", program], check=True)
    stripped = (workshop.folder / "stripped").read_bytes()
    assert stripped.count(b"a_name_that_is_long_") <= 1
    assert workshop.run(workshop.folder / "stripped").tree.keys() == tree.keys()


def test_filters_at_run_time_know_compressed_names(workshop: Workshop) -> None:
    rules = workshop.folder / "filter"
    rules.write_text("SCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\nINCLUDE main forces\nSCOREP_REGION_NAMES_END\n")
    tree = workshop.run(workshop.build("forces.c", "-O2"), QUIPU_FILTER=str(rules)).tree
    assert {path for path, values in tree.items() if path and values["visits"]} == {("main",), ("main", "forces")}
