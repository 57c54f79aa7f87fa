# SPDX-License-Identifier: Apache-2.0
"""Priors of computation: the order of the block counts of a call path is the order of its time.

Method of de Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-B:
the exponents of the effort model are kept, its coefficients are dropped, and new ones are fitted to time.
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
# Metrics beyond blocks must predict time that much better (score, in units of 2 log likelihood), so that noise
# does not choose among many; a change of the order of growth has the same penalty again.
_OTHER_METRIC = 6.0
# Seconds that effort takes at least, where noise hides that it takes any: no processor executes more blocks at once.
_LEAST = 1e-12


def skeleton(effort: Model) -> tuple[Term, ...]:
    """Return the terms of an effort model with coefficient 1, highest order first."""
    return tuple(Term(1.0, term.factors) for term in sorted(effort.terms, key=sort_key, reverse=True))


def priors(effort: Model) -> list[Prior]:
    """Return the priors of a call path with this effort model, the most constrained one first.

    1. Time in proportion to effort: every block costs the same.
    2. The same with a constant, such as the cost of measuring and of cold caches.
    3. The skeleton: every term with a coefficient of its own, because blocks of different loops cost differently.
    4. The second with effort so small that noise hides it, in place of effort alone where that fits no better by far.
    More coefficients must lower the cross-validated error by more than their penalty. The third needs a term of the
    highest order, else it would lose what the effort says about growth.
    """
    constant = Model(effort.parameters, 1.0)
    if not effort.terms:
        return [Prior((constant,), BASIS, "c0")]
    whole = replace(effort, quality=None, notes=())  # what is open of effort is open of time
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


# Metrics that say something of their own per call path, and how near to each other two are that say the same, and their
# constants as parts of the smallest counts.
_MOST_METRICS, _ALIKE, _SMALLER = 4, 1e-3, 0.01


def further_priors(blocks: Model, others: Mapping[str, Model]) -> list[Prior]:
    """Return priors of effort beyond blocks: each metric alone, and each pair of metrics, blocks included.

    others: models of further effort metrics (instructions, flops, loads, stores, bytes …) of a call path by name.
    Those that are in proportion to blocks, or to one another, say nothing new and are left out; so do those with a
    larger constant beside the same terms, as time may have. Which prior is taken
    follows from its cross-validated error and its penalty. Constant blocks are those of a function that leaves its work
    to the library of the language, as filling and copying memory, whose bytes are counted.
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
    """Whether a model is in proportion to the second one, or has a larger constant beside the terms that are."""
    if {term.shape for term in first.terms} != {term.shape for term in second.terms}:
        return False
    other = {term.shape: term.coefficient for term in second.terms}
    ratios = [term.coefficient / other[term.shape] for term in first.terms]
    if max(ratios) - min(ratios) > _ALIKE * max(map(abs, ratios)):
        return False
    # blocks with a constant of their own are no sum of a positive constant and counts that have less of it
    less = second.constant - first.constant / ratios[0]
    least = second.evaluate(np.array(list(product(*second.ranges)))).min() if second.ranges else 0.0
    return bool(less <= _SMALLER * max(float(least), 0.0))
