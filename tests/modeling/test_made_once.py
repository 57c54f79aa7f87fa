# SPDX-License-Identifier: Apache-2.0
"""Results that many fits share are computed once, and unused results are not computed."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from quipu.modeling.pmnf.fit.fitter import fit
from quipu.modeling.pmnf.fit.scattered import varying_errors
from quipu.modeling.pmnf.hypotheses.library import Library
from quipu.modeling.pmnf.hypotheses.tables import make_tables
from quipu.modeling.pmnf.model import Factor, Model, Term
from quipu.modeling.pmnf.options import DEFAULT
from quipu.modeling.pmnf.proposers import grid_coefficients, nest_sums, rounded
from quipu.modeling.pmnf.proposers.exact_terms import ExactLines
from quipu.modeling.pmnf.proposers.grid_coefficients import OtherParameters
from quipu.modeling.pmnf.proposers.grid_forms import Domain, GridForms
from quipu.modeling.pmnf.proposers.loop_nests import LoopNests
from quipu.modeling.pmnf.proposers.nest_sums import NestSums
from quipu.modeling.pmnf.proposers.rounded import RoundedSums
from quipu.modeling.priors import fit as priors_fit
from quipu.modeling.priors.measured import centred
from quipu.modeling.priors.prior import Prior

POINTS = np.array([(p, n) for p in (2.0, 4, 8, 16) for n in (100.0, 200, 400, 800)])


def test_tables_at_the_same_points_are_the_same_and_stay_as_they_are() -> None:
    tables = make_tables(POINTS, Library())
    assert make_tables(POINTS.copy(), Library()) is tables
    assert make_tables(POINTS[1:], Library()) is not tables
    with pytest.raises(ValueError, match="read-only"):
        tables.columns[0][0, 0] = 0.0


def test_counts_that_are_no_whole_numbers_need_nothing_of_rounding() -> None:
    sums = RoundedSums(POINTS, make_tables(POINTS, Library()))
    with patch.object(rounded, "residual_makers") as makers:
        assert sums.propose(POINTS.prod(axis=1)[None] + 0.5) == []
    makers.assert_not_called()


def test_terms_of_points_on_no_lines_together_are_those_of_each() -> None:
    random = np.random.default_rng(3)
    points, values = random.uniform(2, 50, (30, 2)), random.uniform(1, 9, (4, 30))
    terms = np.stack([points[:, 0] ** power for power in (0.5, 1, 1.5, 2)])
    together = np.stack(varying_errors(points, terms, values, 0))
    apart = [np.stack(varying_errors(points, term[None], values, 0)) for term in terms]
    assert np.array_equal(together, np.concatenate(apart, axis=2))
    with patch.object(np.linalg, "solve", wraps=np.linalg.solve) as solve:
        varying_errors(points, terms, values, 0)
    assert solve.call_count == 2


def test_coefficients_at_all_numbers_of_processes_are_fitted_together() -> None:
    where = [np.flatnonzero(POINTS[:, 0] == p) for p in (2, 4, 8, 16)]
    values = 3.0 * POINTS[:, 1] / POINTS[:, 0] + 7.0
    others = OtherParameters(POINTS[:, 1:], where, Library())
    with patch.object(grid_coefficients, "fit", wraps=fit) as calls:
        (found,) = others.coefficients(values[None])
    assert calls.call_count == 1
    assert found is not None
    assert found.values == pytest.approx(np.array([[7.0] * 4, [1.5, 0.75, 0.375, 0.1875]]))


def test_forms_of_the_same_coefficients_are_sought_once() -> None:
    grids = np.array([(1.0, 1), (2, 1), (2, 2), (4, 2)])
    forms = GridForms(grids, 4.0 * grids)
    own = 8.0 / grids[:, 0], 1e-9, 1, True, None
    found = forms.propose(*own)
    assert found is not None
    assert forms.propose(own[0].copy(), *own[1:]) is found
    assert forms.propose(2.0 * own[0], *own[1:]) is not found


def test_few_sets_of_functions_are_looked_at_closely_and_all_that_have_the_values() -> None:
    grids = np.array([(1.0, 1, 1), (2, 1, 1), (2, 2, 1), (2, 2, 2), (4, 2, 2)])
    for width, family in enumerate(GridForms(grids, 4.0 * grids)._families, 1):
        for number in np.random.default_rng(width).integers(len(family.sets), size=10).tolist():
            values = family.design[number] @ np.arange(1.0, width + 1.0)
            possible = family.possible(values * (1.0 + 1e-13), 1e-9 * float(np.abs(values).max()))
            assert number in possible
            assert possible.size < len(family.sets) / 4 + 5


def test_few_pairs_of_nests_are_looked_at_closely_and_all_that_have_the_values() -> None:
    """Also where one nest is nearly all of the sum, and what is left of it is hardly more than rounding."""
    random = np.random.default_rng(2)
    vectors = random.uniform(size=(80, 3))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    for small in (1.0, 1e-3, 1e-6):
        for one, other in random.choice(80, size=(10, 2), replace=False).tolist():
            values = vectors[one] + small * vectors[other]
            values += 1e-10 * random.normal(size=3)
            pairs = nest_sums._on_one_line(vectors, values / np.linalg.norm(values), 1e-9)
            assert sorted((one, other)) in pairs.T.tolist()
            assert pairs.shape[1] < 80 * 79 / 20


def test_sums_of_nests_of_the_same_coefficients_are_sought_once() -> None:
    grids = np.array([(1.0, 1), (2, 1), (2, 2)])
    sums = NestSums(LoopNests(Domain(2, True), (False, False)), grids, 4.0 * grids)
    polynomials = np.array([[0.0] * 3, [0.0] * 3, [3.0, 1.5, 0.75]])
    found = sums.propose(polynomials, 2)
    assert found
    assert sums.propose(polynomials.copy(), 2) is found
    assert sums.propose(polynomials, 1) is not found


def test_priors_of_times_that_are_all_trusted_are_fitted_once() -> None:
    points = np.array([[1.0], [2], [4], [8]])
    growing = Model(("n",), 1.0, (Term(1.0, (Factor("n"),)),))
    priors = [Prior((Model(("n",), 1.0),), "time", "c"), Prior((growing,), "time", "c·(1 + n)")]
    repetitions = centred(np.full((1, 4, 1), 3.0), DEFAULT)
    with patch.object(priors_fit, "_fit_all", wraps=priors_fit._fit_all) as calls:
        (found,) = priors_fit.fit_priors([priors], ("n",), points, repetitions)
    assert found is not None
    assert found.model.constant == pytest.approx(3.0)
    assert sum(len(call.args[0]) for call in calls.call_args_list) == len(priors)


def test_sets_that_reproduce_not_nearly_all_lines_are_fitted_to_none() -> None:
    points = np.array([(p, n) for p in (2.0, 4, 8, 16, 32) for n in (1024.0, 2048, 4096, 8192)])
    odd = np.where(points[:, 1] < 8192, np.arange(20) * 7 % 5, 0)
    counts = 1000.0 * points[:, 1] / points[:, 0] + odd
    lines = ExactLines(points, make_tables(points, Library()), counts[None])
    with patch.object(lines, "_reproduced", wraps=lines._reproduced) as calls:
        _, known = lines.propose(0)
    assert not known.any()
    calls.assert_not_called()
