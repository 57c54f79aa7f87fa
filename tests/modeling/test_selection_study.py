"""The study of selection strategies, small: benchmarks/selection_study.py --quick."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from selection_functions import drawn, grid, noisy, published

STUDY = Path(__file__).resolve().parents[2] / "benchmarks" / "selection_study.py"


def test_the_study_ends_with_shares_of_each_strategy_and_goes_on_where_it_was(tmp_path: Path) -> None:
    options = ("--quick", "--cases", "m2_n2_b20", "--strategies", "posterior,cpf2,gpr", "--jobs", "1")
    command = [sys.executable, str(STUDY), *options, "--folder", str(tmp_path)]
    lines = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    first, second = (json.loads(text.splitlines()[-1]) for text in lines)
    assert first["share"] == second["share"]
    assert {*first["share"]["m2_n2_b20"]} == {"posterior", "cpf2", "gpr"}
    assert first["suggest_seconds"] > 0
    for line in (tmp_path / "results.jsonl").read_text().splitlines():
        for function in json.loads(line)[1]:
            points, _ = grid(2)
            values = drawn(2, 4, 1)[0].values
            assert all(1 <= len(runs) <= 4 for _, runs in function["runs"])
            assert len(function["runs"]) <= len(points) == len(values)


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
