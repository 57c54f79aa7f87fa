# SPDX-License-Identifier: Apache-2.0
"""Build the model of counts f + g·v from the model of the visits v."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..experiment import FloatArray
from ..pmnf.build import qualities
from ..pmnf.changes.one_exception import without_counts
from ..pmnf.model import Alternative, Model, Term, collect


@dataclass(frozen=True)
class Sum:
    """Counts f + g·v: f (plain) and g (per_visit) as constant and terms, alternatives of g (others), and notes."""

    plain: tuple[float, tuple[Term, ...]]
    per_visit: tuple[float, tuple[Term, ...]]
    others: tuple[Alternative, ...] = ()
    notes: tuple[str, ...] = ()


def through(
    found: Sum,
    visits: Model,
    before: Model,
    points: FloatArray,
    values: FloatArray,
    executed: NDArray[np.bool_] | None,
) -> Model:
    """Return the model f + g·v of counts (C, R) that replaces `before`, with the uncertainty of the model of visits.

    executed: the configurations that the quality of the model uses, (C,). If it is None, or no configuration is
    executed, the quality uses all configurations.
    """
    constant, terms = put_in(found, visits.constant, visits.terms)
    doubt = sum(other.weight for other in found.others)
    others = [replace(own, weight=own.weight * (1.0 - doubt), **_named(found, own)) for own in visits.alternatives]
    for other in found.others:
        also = replace(found, per_visit=(other.constant, other.terms))
        others.append(replace(other, **_named(also, visits)))
    notes = tuple(dict.fromkeys((*without_counts(visits.notes), *found.notes)))
    model = Model(visits.parameters, constant, terms, None, before.ranges, (), tuple(others), notes)
    with np.errstate(all="ignore"):
        centre = np.nanmean(values, axis=1)
    known = ~np.isnan(centre)
    if executed is not None and (known & executed).any():
        known &= executed
    fitted = model.evaluate(points[known])
    width = np.array([len(terms) + (constant != 0.0)])
    (quality,) = qualities(centre[known][None], fitted[None], np.array([np.nan]), width)
    return replace(model, quality=quality, covariance=covariance_through(found, visits, model))


def _named(found: Sum, visits: Model | Alternative) -> dict[str, Any]:
    constant, terms = put_in(found, visits.constant, visits.terms)
    return {"constant": constant, "terms": terms}


def put_in(found: Sum, constant: float, terms: tuple[Term, ...]) -> tuple[float, tuple[Term, ...]]:
    """Return f + g·v for the visits v = constant + terms."""
    visits = [Term(constant, ()), *terms]
    per_visit = [Term(found.per_visit[0], ()), *found.per_visit[1]]
    products = [a.times(b) for a in per_visit for b in visits if a.coefficient and b.coefficient]
    return collect(found.plain[0], [*products, *found.plain[1]])


def covariance_through(found: Sum, visits: Model, model: Model) -> tuple[tuple[float, ...], ...]:
    """Return the covariance of `model`, which is linear in the coefficients of the model of visits."""
    if not visits.covariance:
        return ()
    place = {term.shape: number + 1 for number, term in enumerate(model.terms)} | {(): 0}
    old, new, parameters = len(visits.terms) + 1, len(model.terms) + 1, len(visits.parameters)
    linear = np.zeros((new, old))
    for column, own in enumerate([Term(1.0, ()), *visits.terms]):
        for piece in [Term(found.per_visit[0], ()), *found.per_visit[1]]:
            row = place.get(piece.times(own).shape)
            if row is not None:
                linear[row, column] += piece.coefficient
    blocks = (len(visits.covariance) - parameters) // old if len(visits.covariance) > old else 1
    whole = np.kron(np.eye(blocks), linear)
    if blocks > 1:
        top = [[high for _, high in model.ranges]]
        value = abs(float(model.evaluate(top)[0])) or 1.0
        plain = abs(float(Model(model.parameters, *found.plain).evaluate(top)[0]))
        share = max(0.0, 1.0 - plain / value)  # only the part with visits is curved
        curved = share * np.eye(parameters)
        empty = np.zeros((len(whole), parameters))
        whole = np.block([[whole, empty], [np.zeros((parameters, whole.shape[1])), curved]])
    return tuple(map(tuple, (whole @ np.asarray(visits.covariance) @ whole.T).tolist()))
