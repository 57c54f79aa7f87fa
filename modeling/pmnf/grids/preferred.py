# SPDX-License-Identifier: Apache-2.0
"""Select between models of counts by process grids and models by the number of processes alone."""

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

# Numbers of processes, beyond the number of their functions, that confirm a model by p alone.
_CONFIRM = 2
# Number of functions by which a model by a known grid must exceed a model by p alone.
_FEWER = 2


def beside(several: Sequence[Model], former: Model | None, also: bool, parameter: str) -> Model:
    """Return the first of models by grids with the others as alternatives, and the former model if it is likely `also`.

    The former model is the likelier one if few numbers of processes confirm the first.
    """
    if former is not None and LONG_GRIDS.is_in(several[0].notes):
        return with_others([former, *several], parameter)
    likely = former is not None and (also or few_confirm(several[0]))
    model = with_others([*several, *(each(former) if former is not None and likely else [])], parameter)
    return with_interval(model, former, parameter) if former is not None and TOO_FEW_GRIDS.is_in(model.notes) else model


def with_interval(model: Model, former: Model, parameter: str) -> Model:
    """Return a model by a grid that nothing confirms, whose interval contains the interval of the former model.

    The ends of the former interval at this multiple of the processes, with the largest values of all other parameters,
    are alternatives in proportion to it.
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
    """Return the first model by a grid that is known at points (C, m), without few processes, and the former model.

    The former model comes first if it is simpler, or if hardly any grid confirms the others.
    """
    if former is None:
        return several[0]
    doubtful = few_confirm(several[0]) or LONG_GRIDS.is_in(several[0].notes)
    if doubtful or is_simpler(former, several[0], True, parameter, points):
        return with_others([former, *several], parameter)
    return beside(several, former, True, parameter)


def is_simpler(former: Model, found: Model, known: bool, parameter: str, points: FloatArray) -> bool:
    """Return whether a model by p alone has fewer functions than a model by a grid.

    It reproduces the counts at points (C, m), and at least two numbers of processes must confirm it. With an assumed
    grid, it must have no more functions, because functions along rows of a grid fit most functions of p. With a known
    grid, it must have two fewer.
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
    """Return the number of functions of a model; equal functions of all dimensions count once."""
    kinds = {
        (term.coefficient, *sorted(str(replace(f, axis=None)) + str(f.axis is None) for f in term.factors))
        for term in model.terms
    }
    return len(kinds) + bool(model.constant)


def is_better(found: Model, former: Model | None, parameter: str, points: FloatArray, counts: FloatArray) -> bool:
    """Return whether a model by a grid explains more of the counts (C,) at points (C, m) than the former model.

    It does not if the former model is exact and a constant for p > 1, or also reproduces the counts where nothing is
    executed. If grids of several dimensions are necessary, this exception does not apply.
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
    """Return whether a model misses the counts, or needs numbers of ranks that execute nothing to reproduce them.

    A part 1/p at several ranks is explained (one rank works for the others), unless it is negative at the points `idle`
    (Z, m), where nothing was executed.
    """
    if model is None or model.quality is None:
        return False
    factors = [f for term in model.terms for f in term.factors if f.parameter == parameter]
    shared = bool(factors) and all(f.exponent == -1 and not f.log for f in factors)
    if not reproduces(model) or (model.notes and not shared):
        return True
    return bool(shared and len(idle) and model.evaluate(idle).min() < -EXACT_FIT * abs(model.constant))


def is_doubted(model: Model | None, parameter: str, unseen: bool) -> bool:
    """Return whether a model has functions of the number of processes, other than shares, that grids may explain.

    unseen: an extent of the grid was always 1, so that shares are uncertain, too.
    """
    factors = [f for term in model.terms for f in term.factors if f.parameter == parameter] if model else []
    return any(unseen or f.log or f.exponent != -1 for f in factors)
