# SPDX-License-Identifier: Apache-2.0
"""Criterion for models of counts without the points of one process, which may follow another formula."""

from __future__ import annotations

import numpy as np

from ...experiment import FloatArray
from ..calibration import (
    DEVIATION_CERTAINTY,
    EXPECTED_DEVIATION,
    INEXACT,
    LARGE_ERROR,
    OTHER_FORMULA_ODDS,
    UNUSUAL_COMPLEXITY,
)
from ..data.lines import lines
from ..grids.calibration import FURTHER
from ..hypotheses.library import make_term
from ..model import Model
from .deviating import penalty_of, small_sample
from .repeated import student

# Smaller relative errors of models that reproduce the counts are rounding.
EXACT_FIT = 1e-9


def is_exact(model: Model) -> bool:
    """Return whether a model reproduces all counts, possibly with alternatives that do, too."""
    return model.quality is not None and model.quality.rms_relative < EXACT_FIT


def reproduces(model: Model) -> bool:
    """Return whether a model of counts is exact, without exact alternatives."""
    return is_exact(model) and not model.alternatives


def needs_much(model: Model, parameter: str) -> bool:
    """Return whether a model of counts has several functions of a parameter, or large errors."""
    functions = {term.exponents(parameter) for term in model.terms} - {(0, 0)}
    return model.quality is not None and (len(functions) > 1 or model.quality.rms_relative > LARGE_ERROR)


def explains_more(without: Model, model: Model, parameter: str, values: int) -> bool:
    """Return whether a model of counts without x=1 is better than `model`, which is complicated because of x=1.

    This is so if `model` has an unusual exponent or large errors, and the model without x=1 has less growth or much
    smaller errors. It is also so if the model without x=1 is likelier, although x=1 is then an additional coefficient.
    values: distinct values of x, including 1.
    """
    if without.quality is None or model.quality is None:
        return False
    error, with_one = without.quality.rms_relative, model.quality.rms_relative
    unusual = make_term(*model.lead(parameter)).cost > UNUSUAL_COMPLEXITY or with_one > LARGE_ERROR
    slower = unusual and without.lead(parameter) < model.lead(parameter) and len(without.terms) <= len(model.terms)
    if (slower and error <= max(2.0 * with_one, LARGE_ERROR)) or error < with_one / 3.0:
        return True
    return _score(without, parameter, values, apart=True) < _score(model, parameter, values, apart=False)


def turns(model: Model, parameter: str, points: FloatArray, values: FloatArray) -> bool:
    """Return whether a model exceeds all measured values beyond the points (C, m), although the values (C,) fall.

    Sums fitted to few values do this by coincidence: the measurements do not determine the rising term.
    """
    place = model.parameters.index(parameter)
    found = lines(points, place, least=2)
    if not found or not all(np.diff(values[line[np.argsort(points[line, place])]]).max() <= 0.0 for line in found):
        return False
    further = points[points[:, place] == points[:, place].max()].copy()
    further[:, place] *= max(FURTHER)
    return bool(model.evaluate(further).max() > values.max())


def _score(model: Model, parameter: str, values: int, apart: bool) -> float:
    """Return -2 log of the posterior of a model of counts that deviate (deviating.py), along a line.

    apart: whether x=1 has a separate coefficient, the count there.
    """
    assert model.quality is not None
    width = len(model.terms) + bool(model.constant) + apart
    squares = np.array(model.quality.rms_relative**2) * (1.0 - apart / values)
    score = float(student(squares, values, np.array(EXPECTED_DEVIATION**2), DEVIATION_CERTAINTY))
    score += float(small_sample(width, values)) + penalty_of(model.constant, model.terms, parameter)
    return score + (INEXACT.coefficient + OTHER_FORMULA_ODDS) * apart
