# SPDX-License-Identifier: Apache-2.0
"""Build priors of computation: time has the order of the block counts of a call path.

Method of de Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-B: keep
the exponents of the effort model, drop its coefficients, and fit new coefficients to time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from ..pmnf.model import Model, Term, add, sort_key
from .fit import MOST_COLUMNS
from .prior import Prior

BASIS = "effort"
# Metrics other than blocks must improve the prediction of time by this score (2 log likelihood), so that noise does not
# select among many. A different order of growth costs the same again.
_OTHER_METRIC = 6.0
# Smallest seconds per block, used if noise hides the time of effort: no processor executes blocks faster.
_LEAST = 1e-12


def skeleton(effort: Model) -> tuple[Term, ...]:
    """Return the terms of an effort model with coefficient 1, highest order first."""
    return tuple(Term(1.0, term.factors) for term in sorted(effort.terms, key=sort_key, reverse=True))


def priors(effort: Model) -> list[Prior]:
    """Return the priors of a call path with this effort model, the most constrained one first.

    - Time in proportion to effort: every block takes the same time.
    - The same with a constant, for example for measuring and cold caches.
    - The skeleton: every term with a separate coefficient, because blocks of different loops take different times. It
      must contain a term of the highest order, so that it keeps the growth of the effort.
    - A constant, plus effort with the smallest possible time that noise hides; only if effort alone fits much worse.

    An additional coefficient must lower the cross-validated error by more than its penalty.
    """
    constant = Model(effort.parameters, 1.0)
    if not effort.terms:
        return [Prior((constant,), BASIS, "c0")]
    whole = replace(effort, quality=None, notes=())  # uncertainty of effort is uncertainty of time
    formula = f"c1·({whole})"
    terms = skeleton(effort)
    found = [
        Prior((whole,), BASIS, formula, needed=(0,)),
        Prior((constant, whole), BASIS, f"c0 + {formula}", needed=(1,)),
    ]
    if 1 < len(terms) < MOST_COLUMNS:
        columns = (constant, *(Model(effort.parameters, 0.0, (term,)) for term in terms))
        names = [f"c{index}·{column}" for index, column in enumerate(columns[1:], 1)]
        leading = effort.leading
        lead = tuple(
            index + 1
            for index, term in enumerate(terms)
            if all(term.exponents(name) == leading[name] or not any(leading[name]) for name in effort.parameters)
        )
        if lead:
            found.append(Prior(columns, BASIS, " + ".join(["c0", *names]), needed=lead))
    hidden = Prior((constant, whole), BASIS, f"c0 + {formula}", least=(0.0, _LEAST), penalty=2.0 * _OTHER_METRIC)
    return [*found, hidden]


# Metrics with separate information per call path; relative difference up to which two metrics count as proportional;
# and largest constants, as a share of the smallest counts.
_MOST_METRICS, _ALIKE, _SMALLER = 4, 1e-3, 0.01


def further_priors(blocks: Model, others: Mapping[str, Model]) -> list[Prior]:
    """Return priors of effort other than blocks: each metric alone, and each pair of metrics with blocks.

    others: models of further effort metrics (instructions, flops, loads, stores, bytes …) of a call path, by name.
    Omits metrics that are proportional to blocks or to each other, and metrics that only differ by a larger constant,
    because time has a constant, too. The cross-validated error and the penalty decide which prior is selected. A
    function with constant blocks leaves its work to the C library, for example to fill and copy memory; its bytes are
    counted.
    """
    distinct: dict[str, Model] = {"blocks": blocks} if blocks.terms else {}
    for name, model in others.items():
        if model.terms and len(distinct) <= _MOST_METRICS and not any(_alike(model, m) for m in distinct.values()):
            distinct[name] = model
    found = []
    constant = Model(blocks.parameters, 1.0)
    for number in (1, 2):
        for names in combinations(distinct, number):
            if names == ("blocks",):
                continue
            columns = tuple(distinct[name] for name in names)
            whole = add(columns)
            lead = tuple(i for i, column in enumerate(columns) if column.leading == whole.leading)
            penalty = _OTHER_METRIC * (1 if whole.leading == blocks.leading else 2)
            basis = f"{BASIS}: {' + '.join(names)}"
            parts = [f"c{i + 1}·({name} = {m})" for i, (name, m) in enumerate(zip(names, columns, strict=True))]
            found.append(Prior(columns, basis, " + ".join(parts), needed=lead, penalty=penalty))
            if number == 1:
                shifted = tuple(i + 1 for i in lead)
                text = " + ".join(["c0", *parts])
                found.append(Prior((constant, *columns), basis, text, needed=shifted, penalty=penalty))
    return found


def _alike(first: Model, second: Model) -> bool:
    """Return whether a model is proportional to the second one, except for a larger constant."""
    if {term.shape for term in first.terms} != {term.shape for term in second.terms}:
        return False
    other = {term.shape: term.coefficient for term in second.terms}
    ratios = [term.coefficient / other[term.shape] for term in first.terms]
    if max(ratios) - min(ratios) > _ALIKE * max(map(abs, ratios)):
        return False
    # blocks with a separate constant are not a sum of a positive constant and counts with a smaller constant
    less = second.constant - first.constant / ratios[0]
    least = second.evaluate(np.array(list(product(*second.ranges)))).min() if second.ranges else 0.0
    return bool(less <= _SMALLER * max(float(least), 0.0))
