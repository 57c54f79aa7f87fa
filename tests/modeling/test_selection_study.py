# SPDX-License-Identifier: Apache-2.0
"""The study of selection strategies, small: benchmarks/selection_study.py --quick."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from selection_functions import drawn, grid, noisy, published
from selection_runs import Task, within

STUDY = Path(__file__).resolve().parents[2] / "benchmarks" / "selection_study.py"


def test_the_study_ends_with_shares_of_each_strategy_and_goes_on_where_it_was(tmp_path: Path) -> None:
    options = ("--quick", "--cases", "m2_n2_b5,m2_n2_b20", "--strategies", "posterior,cpf2,gpr,full", "--jobs", "1")
    command = [sys.executable, str(STUDY), *options, "--folder", str(tmp_path)]
    lines = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    first, second = (json.loads(text.splitlines()[-1]) for text in lines)
    assert "of 4 tasks" in lines[0]
    assert "tasks" not in lines[1]
    assert first["share"] == second["share"]
    assert {*first["share"]["m2_n2_b20"]} == {"posterior", "cpf2", "gpr", "full"}
    assert first["affordable"] == {"m2_n2_b5": 100.0, "m2_n2_b20": 100.0}
    assert first["suggest_seconds"] > 0


@pytest.mark.parametrize("name", ["posterior", "cpf", "random", "bayes"])
def test_no_strategy_spends_more_than_its_budget_and_each_goes_on_with_the_one_before(name: str) -> None:
    task = Task(2, 5.0, (20.0,), name, seed=1, first=0, count=3)
    points, target = grid(2)
    functions = task.functions
    costs = np.array([own.values for own in functions]) * points[:, 0]
    strategies = [task.strategy_of(number) for number in range(3)]
    found = within(costs, task.available(functions), points, target, strategies, name, (2.0, 20.0, 100.0))
    for share, counts in zip((0.02, 0.2, 1.0), found, strict=True):
        assert ((costs * counts).sum(axis=1) <= share * 4 * costs.sum(axis=1) * (1 + 1e-9)).all()
    assert (found[0] <= found[1]).all()
    assert (found[2] == 4).all()


def test_a_case_that_cannot_be_is_refused_with_those_that_can() -> None:
    done = subprocess.run(
        [sys.executable, str(STUDY), "--quick", "--cases", "m2_n5_b7"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "m2_n5_b7: write them like m2_n5_b10" in done.stderr


def test_drawn_functions_are_those_of_their_seed_and_have_terms_that_matter() -> None:
    points, target = grid(3)
    assert points.shape == (125, 3)
    assert target.tolist() == [128, 60, 6000]
    one, again, other = (drawn(3, 3, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a.values, b.values) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one[0].values, other[0].values)
    assert all((function.values > 0).all() and function.far > function.values.max() for function in one)


@pytest.mark.parametrize("kind", ["uniform", "mixed"])
def test_noise_is_independent_and_of_the_size_that_is_asked_for(kind: str) -> None:
    values = np.full(5000, 10.0)
    relative = noisy(values, 0.1, kind, (1, 2)) / 10.0 - 1.0
    assert abs(relative.mean()) < 0.005
    assert 0.04 < relative.std() < 0.08
    assert abs(float((relative[:, 0] * relative[:, 1]).mean()) / float(relative.var())) < 0.05


def test_published_functions_are_read_as_sums_and_products(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(
        json.dumps(
            [
                "2.0+3.0*a**0.5*math.log2(a)**1*0.5*b**1*math.log2(b)**0",
                "1.0+2.0*a**1*math.log2(a)**0+b**2*math.log2(b)**0",
            ]
        )
    )
    product_form, sum_form = published(tmp_path / "f.json", 2)
    assert product_form.values[0] == pytest.approx(2.0 + 3.0 * 2.0 * 2.0 * 0.5 * 10.0)
    assert sum_form.far == pytest.approx(1.0 + 2.0 * 128.0 + 3600.0)
