# SPDX-License-Identifier: Apache-2.0
"""Which models of counts are preferred: those by process grids, or those by the number of processes alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ...catalogue import LONG_GRIDS, TOO_FEW_GRIDS
from ...experiment import FloatArray
from ..criterion.one_process import EXACT_FIT, reproduces
from ..model import Model
from .calibration import FURTHER, NEST_END
from .models import each, with_others
from .terms import few_confirm

# Numbers of processes beyond the functions of them that confirm a model by these alone.
_CONFIRM = 2
# Functions that those of a grid that is known must be more than functions of p alone.
_FEWER = 2


def beside(several: Sequence[Model], former: Model | None, also: bool, parameter: str) -> Model:
    """Return the first of models by grids with the others, and with the former one if it is likely `also`.

    So it is where few numbers of processes confirm the first; it is the likelier one where nothing speaks for that.
    """
    if former is not None and LONG_GRIDS.is_in(several[0].notes):
        return with_others([former, *several], parameter)
    likely = former is not None and (also or few_confirm(several[0]))
    model = with_others([*several, *(each(former) if former is not None and likely else [])], parameter)
    return with_interval(model, former, parameter) if former is not None and TOO_FEW_GRIDS.is_in(model.notes) else model


def with_interval(model: Model, former: Model, parameter: str) -> Model:
    """Return a model by a grid that nothing confirms, whose interval holds that of the former one beyond its points.

    The ends of that at so many times the processes, the largest of all else, are alternatives in proportion to it.
    """
    place = model.parameters.index(parameter)
    point = [high * (FURTHER[0] if at == place else 1.0) for at, (_, high) in enumerate(model.ranges)]
    known = former.predict(point)
    if known.value > 0:
        for end in (known.lower, known.upper):
            scaled = former.scaled(end / known.value)
            model = model.doubted(NEST_END, float(scaled.constant), scaled.terms)
    return model


def beyond_few(several: Sequence[Model], former: Model | None, parameter: str, points: FloatArray) -> Model:
    """Return the first of models by a grid that is known at points (C, m), without few processes, and the former one.

    That comes first where it is simpler, or where hardly any grid confirms the others.
    """
    if former is None:
        return several[0]
    doubtful = few_confirm(several[0]) or LONG_GRIDS.is_in(several[0].notes)
    if doubtful or is_simpler(former, several[0], True, parameter, points):
        return with_others([former, *several], parameter)
    return beside(several, former, True, parameter)


def is_simpler(former: Model, found: Model, known: bool, parameter: str, points: FloatArray) -> bool:
    """Whether a model by p alone, which reproduces the counts at points (C, m), has fewer functions than one by a grid.

    Two numbers of processes at least must confirm it. Along rows of a grid that is assumed there is something for the
    counts of most functions of p, so that these must be no more. Of a grid that is known they must be two fewer: p of
    several processes is no sum of three functions of it.
    """
    place = former.parameters.index(parameter)
    of_p = {term.exponents(parameter) for term in former.terms}
    if former.constant:
        of_p.add((Fraction(0), 0))
    if not reproduces(former) or len(of_p) + _CONFIRM > np.unique(points[:, place]).size:
        return False
    along = any(f.axis is not None and (f.exponent > 0 or f.log) for term in found.terms for f in term.factors)
    return functions(former) + (_FEWER if known else not along) <= functions(found)


def functions(model: Model) -> int:
    """Return the number of functions of a model; what it has of all dimensions alike is one."""
    kinds = {
        (term.coefficient, *sorted(str(replace(f, axis=None)) + str(f.axis is None) for f in term.factors))
        for term in model.terms
    }
    return len(kinds) + bool(model.constant)


def is_better(found: Model, former: Model | None, parameter: str, points: FloatArray, counts: FloatArray) -> bool:
    """Whether a model by a grid explains more of the counts (C,) at points (C, m) than the former one.

    Unless grids of several dimensions are needed, that is not so of one that is exact and a constant beyond one process
    or has the counts where nothing is executed, too.
    """
    if former is not None and former.is_constant and reproduces(former):
        return False
    if any(f.axis is not None and f.axis.dimensions > 1 for term in found.terms for f in term.factors):
        return True
    if former is None or not reproduces(former):
        return True
    everywhere = np.abs(former.evaluate(points) - counts).max() <= 1e-9 * np.abs(counts).max()
    return not everywhere and former.depends_on(parameter)


def is_unexplained(model: Model | None, parameter: str, idle: FloatArray) -> bool:
    """Whether a model does not reproduce the counts, or only without numbers of ranks that do not execute anything.

    A part of 1/p for each of several ranks is explained, one rank does nothing for others, unless it makes less than
    nothing of that at the points `idle` (Z, m), where nothing was executed.
    """
    if model is None or model.quality is None:
        return False
    factors = [f for term in model.terms for f in term.factors if f.parameter == parameter]
    shared = bool(factors) and all(f.exponent == -1 and not f.log for f in factors)
    if not reproduces(model) or (model.notes and not shared):
        return True
    return bool(shared and len(idle) and model.evaluate(idle).min() < -EXACT_FIT * abs(model.constant))


def is_doubted(model: Model | None, parameter: str, unseen: bool) -> bool:
    """Whether a model has functions of the number of processes that are no share, which grids may explain.

    unseen: an extent of the grid was always 1, so that shares are doubted, too.
    """
    factors = [f for term in model.terms for f in term.factors if f.parameter == parameter] if model else []
    return any(unseen or f.log or f.exponent != -1 for f in factors)
