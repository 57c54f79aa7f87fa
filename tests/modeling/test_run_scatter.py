# SPDX-License-Identifier: Apache-2.0
"""Scatter of single runs, and the interval of nine of ten runs at a point."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.document import from_document, to_document
from quipu.modeling.errors import FormatError
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region, RegionKind
from quipu.modeling.metrics import METRICS
from quipu.modeling.run_scatter import run_scatter
from quipu.report.model_views import ranking_view

P: FloatArray = np.asarray(2.0 ** np.arange(1, 7), np.float64)


def program(runs: FloatArray) -> Experiment:
    """Return a program of two call paths, and MPI_Init that scatters more; runs: factors of times (C, R)."""
    regions = (Region("main", "main"), Region("work", "work"), Region("MPI_Init", "MPI_Init", RegionKind.MPI))
    tree = CallTree(regions, np.arange(3), np.array([-1, 0, 0]))
    exact: FloatArray = np.stack([np.full(P.size, 0.1), 0.2 * np.log2(P), np.full(P.size, 0.5)])
    times: FloatArray = exact[:, :, None] * np.stack([runs, runs, runs**9])
    return Experiment("x", ("p",), P[:, None], tree, {"time": METRICS["time"]}, {"time": times})


def test_nine_of_ten_runs_are_within() -> None:
    random = np.random.default_rng(5)
    seen = program(np.exp(0.1 * random.standard_normal((P.size, 5))))
    analysis = analyze(seen)
    assert analysis.run_scatter is not None
    assert 0.12 < analysis.run_scatter < 0.22  # 1.645 · 0.1
    at_once = evaluate(analysis, {"p": 128})
    assert at_once.one_run is not None
    low, high = at_once.one_run
    assert low < at_once.total.lower and high > at_once.total.upper
    more = 0.1 + 0.2 * 7
    taken = more * np.exp(0.1 * random.standard_normal(2000))
    assert 0.85 < np.mean((low <= taken) & (taken <= high)) < 0.98
    facts = dict(ranking_view(analysis, seen, {"p": 128.0}, "time", False, 3).facts)
    assert facts["one run"].endswith(" in nine of ten") and " .. " in facts["one run"]
    wide = replace(analysis, run_scatter=4.0)
    assert "one run" not in dict(ranking_view(wide, seen, {"p": 128.0}, "time", False, 3).facts)  # cannot be known
    kept = from_document(to_document(analysis))
    assert evaluate(kept, {"p": 128}).one_run == at_once.one_run


def test_runs_that_are_the_same_or_not_repeated_say_nothing() -> None:
    same, once = program(np.ones((P.size, 5))), program(np.ones((P.size, 1)))
    assert run_scatter(same) == pytest.approx(0.0, abs=1e-12)
    assert evaluate(analyze(same), {"p": 128}).one_run is None
    assert run_scatter(once) is None
    assert evaluate(analyze(once), {"p": 128}).one_run is None
    two = np.full((P.size, 5), np.nan)
    two[:, 0] = 1.0
    two[:2] = 1.1
    assert run_scatter(program(two)) == pytest.approx(0.0, abs=1e-12)
    assert run_scatter(replace(same, values={}, metrics={})) is None


def test_oversubscribed_runs_count_where_others_were_not_repeated() -> None:
    factors = np.ones((P.size, 5))
    factors[3:] = np.exp([-0.3, 0.3, -0.3, 0.3, 0.0])
    mixed = replace(program(factors), oversubscribed=P > 8)
    assert run_scatter(mixed) == pytest.approx(0.0, abs=1e-12)
    factors[:3, 1:] = np.nan
    found = run_scatter(replace(program(factors), oversubscribed=P > 8))
    assert found == pytest.approx(0.3 * math.sqrt(5 / 4))


def test_models_with_a_scatter_that_is_none_are_refused() -> None:
    content = to_document(analyze(program(np.ones((P.size, 1)))))
    for wrong in (-0.1, "much"):
        with pytest.raises(FormatError, match="run_scatter"):
            from_document({**content, "run_scatter": wrong})
