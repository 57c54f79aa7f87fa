"""Priors of computation: the order of the block counts of a call path is the order of its time.

Method of de Morais et al., Denoising Application Performance Models with Noise-Resilient Priors, section III-B:
the exponents of the effort model are kept, its coefficients are dropped, and new ones are fitted to time.
"""

from __future__ import annotations

from ..pmnf.model import Model
from ..pmnf.term import Term, sort_key
from .fit import MOST_COLUMNS, Prior

BASIS = "effort"


def skeleton(effort: Model) -> tuple[Term, ...]:
    """Return the terms of an effort model with coefficient 1, highest order first."""
    return tuple(Term(1.0, term.factors) for term in sorted(effort.terms, key=sort_key, reverse=True))


def priors(effort: Model) -> list[Prior]:
    """Return the priors of a call path with this effort model, the most constrained one first.

    1. Time in proportion to effort: every block costs the same.
    2. The same with a constant, such as the cost of measuring and of cold caches.
    3. The skeleton: every term with a coefficient of its own, because blocks of different loops cost differently.
    More coefficients must pay for themselves in cross-validated error. The third needs a term of the highest order,
    else it would lose what the effort says about growth.
    """
    constant = Model(effort.parameters, 1.0)
    if not effort.terms:
        return [Prior((constant,), ("c0",), BASIS, "c0")]
    whole = Model(effort.parameters, effort.constant, effort.terms)
    formula = f"c1·({whole})"
    terms = skeleton(effort)
    found = [
        Prior((whole,), ("c1",), BASIS, formula, needed=(0,)),
        Prior((constant, whole), ("c0", "c1"), BASIS, f"c0 + {formula}", needed=(1,)),
    ]
    if 1 < len(terms) < MOST_COLUMNS:
        columns = (constant, *(Model(effort.parameters, 0.0, (term,)) for term in terms))
        symbols = tuple(f"c{index}" for index in range(len(columns)))
        names = [f"{symbol}·{column}" for symbol, column in zip(symbols[1:], columns[1:], strict=True)]
        leading = effort.leading
        lead = tuple(
            index + 1
            for index, term in enumerate(terms)
            if all(term.exponents(name) == leading[name] or not any(leading[name]) for name in effort.parameters)
        )
        if lead:
            found.append(Prior(columns, symbols, BASIS, " + ".join(["c0", *names]), needed=lead))
    return found
