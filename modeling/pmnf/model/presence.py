# SPDX-License-Identifier: Apache-2.0
"""Convert models that are absent at 1 of a parameter to functions that are 0 there, so that they can be added."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from ...documents import Real
from .model import Model, collect
from .term import Factor, Term


def present(model: Model, least: Collection[str]) -> Model:
    """Return a model without alternatives, multiplied by [x > 1] if it is absent at x = 1.

    least: the parameters that are never below 1. Other absent values do not change.
    """
    for name in least:
        if (name, 1.0) in model.absent:
            model = _beyond_one(model, name)
    return replace(model, alternatives=())


def _beyond_one(model: Model, name: str) -> Model:
    several = Term(1.0, (Factor(name, several=True),))
    before = [Term(model.constant, ()), *model.terms]
    after = [term if _vanishes(term, name) else term.times(several) for term in before]
    constant, terms = collect(0.0, after)
    absent = tuple(pair for pair in model.absent if pair != (name, 1.0))
    covariance = _covariance(model, after, terms) if model.covariance else ()
    return replace(model, constant=constant, terms=terms, covariance=covariance, absent=absent)


def _vanishes(term: Term, name: str) -> bool:
    """Return whether a term is 0 at 1 of a parameter, as log2(x) and (x-1)/x are."""
    one = np.ones(1)
    return any(factor.parameters == {name} and not factor.at({name: one}, one.shape)[0] for factor in term.factors)


def _covariance(model: Model, after: list[Term], terms: tuple[Term, ...]) -> tuple[tuple[Real, ...], ...]:
    """Return the covariance if the constant and the terms of a model are those of `after`, collected to `terms`."""
    place = {term.shape: row for row, term in enumerate(terms, 1)}
    linear = np.zeros((1 + len(terms), len(after)))
    for column, term in enumerate(after):
        if term.shape in place:
            linear[place[term.shape], column] = 1.0
    parameters = len(model.parameters)
    if len(model.covariance) > len(after):
        blocks = np.kron(np.eye(1 + parameters), linear)
        linear = np.zeros((len(blocks) + parameters, len(model.covariance)))
        linear[: len(blocks), : blocks.shape[1]] = blocks
        linear[len(blocks) :, blocks.shape[1] :] = np.eye(parameters)
    return tuple(map(tuple, (linear @ np.asarray(model.covariance) @ linear.T).tolist()))
