# SPDX-License-Identifier: Apache-2.0
"""Convert models of call paths that are absent at the value 1 of a parameter to functions that are 0 there.

Sums of models have no `absent` values, but they can contain such functions.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from ...documents import Real
from .model import Model, collect
from .term import Factor, Term


def present(model: Model, least: Collection[str]) -> Model:
    """Return the model without alternatives; if it is absent at x = 1, its terms are multiplied by [x > 1].

    [x > 1] is 1 for x > 1 and otherwise 0. Terms that are 0 at x = 1 do not need it. least: names of the parameters
    that are never below 1; only these are converted. Other absent values do not change.
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
    """Return whether a term is 0 where the parameter is 1, because of a factor such as log2(x) or (x-1)/x."""
    one = np.ones(1)
    return any(factor.parameters == {name} and not factor.at({name: one}, one.shape)[0] for factor in term.factors)


def _covariance(model: Model, after: list[Term], terms: tuple[Term, ...]) -> tuple[tuple[Real, ...], ...]:
    """Return the covariance of a model after the conversion of its constant and terms.

    after: the converted constant and terms, in the order of the rows; terms: the same, with like terms collected.
    """
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
