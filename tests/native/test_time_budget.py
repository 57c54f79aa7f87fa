# SPDX-License-Identifier: Apache-2.0
"""Call paths that are entered too often lose their time to their callers, and nothing else."""

from __future__ import annotations

import os
import subprocess

import pytest

from .conftest import Measured, Workshop
from .test_exactness import counts

PROGRAM = """
#include <stdlib.h>
volatile double sink;
__attribute__((noinline)) double leaf(double x) { return x > 3 ? x * 2 : x + 1; }
double (*volatile call)(double) = leaf;
__attribute__((noinline)) void often(int i) { sink += call(i & 7); }
__attribute__((noinline)) void outer(int n) {
    for (int i = 0; i < n; i++)
        often(i);
}
int main(int argc, char **argv) {
    for (int i = 0; i < 10; i++)
        outer(atoi(argv[1]));
    return 0;
}
"""
VISITS = 2000000
LIMITED = "1e-9"


def measured(workshop: Workshop, name: str, *options: str, **settings: str) -> Measured:
    source = workshop.folder / "often.c"
    source.write_text(PROGRAM)
    program = workshop.build(source, "-O2", *options, name=name)
    return workshop.run(program, str(VISITS // 10), ends_with=0, **settings)


@pytest.mark.parametrize("options", [(), ("-fPIC",), ("-O0",), ("--quipu-all",)], ids=lambda o: " ".join(o) or "usual")
def test_a_call_path_that_is_entered_too_often_loses_its_time(workshop: Workshop, options: tuple[str, ...]) -> None:
    run = measured(workshop, "limited", *options, QUIPU_TIME_BUDGET=LIMITED)
    assert run.profile.attributes["untimed_paths"] == ("2" if "--quipu-all" in options else "1")
    first, last = (float(run.profile.attributes[f"untimed_{which}_seconds"]) for which in ("first", "last"))
    assert 0 < first <= last < 600
    assert run.tree[("main", "outer", "often")]["time"] == 0.0
    assert run.tree[("main", "outer", "often")]["visits"] == VISITS
    assert run.tree[("main", "outer")]["time"] > 0.0
    exact = measured(workshop, "exact", *options, "--quipu-naive", QUIPU_TIME_BUDGET="0")
    assert counts(run) == counts(exact)
    assert "untimed_paths" not in exact.profile.attributes


def test_without_a_limit_every_call_path_has_its_time(workshop: Workshop) -> None:
    run = measured(workshop, "unlimited", QUIPU_TIME_BUDGET="0")
    assert run.tree[("main", "outer", "often")]["time"] > 0.0
    assert "untimed_paths" not in run.profile.attributes


@pytest.mark.parametrize("wrong", ["much", "-1", "101", "nan"])
def test_a_budget_is_a_number_of_percent(workshop: Workshop, wrong: str) -> None:
    source = workshop.folder / "often.c"
    source.write_text(PROGRAM)
    program = workshop.build(source, "-O2", name="wrong")
    environment = {**os.environ, "QUIPU_DIR": str(workshop.folder), "QUIPU_TIME_BUDGET": wrong}
    done = subprocess.run([program, "1"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    meant = "it must be a number of percent, 0 for no limit [bad-setting]"
    assert done.stderr == f"quipu: error: QUIPU_TIME_BUDGET={wrong}: {meant}\n"
