# SPDX-License-Identifier: Apache-2.0
"""Build priors of communication: Table I with the measured models of bytes and calls.

α counts per call: its column is visits(p, x) times the latency of the operation. β and γ count per byte: their columns
are B(p, x) times the share of the bytes that is transferred or reduced.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from ..experiment import FloatArray
from ..pmnf.model import Factor, Model, Term
from .prior import Prior
from .table import Bytes, Row, Scale


def bytes_of(
    row: Row, sent: FloatArray, received: FloatArray, processes: FloatArray, requested: FloatArray
) -> FloatArray:
    """Return B of a row from mean bytes per rank and the size of the communicator, arrays of equal shape.

    requested: the bytes for which a completion waits (`requests.requested_bytes`).
    """
    if row.bytes is Bytes.REQUESTED:
        return requested
    if row.bytes is Bytes.SENT:
        return sent
    if row.bytes is Bytes.RECEIVED:
        return received
    if row.bytes is Bytes.ALL_SENT:
        return sent * processes
    if row.bytes is Bytes.ALL_RECEIVED:
        return received * processes
    if row.bytes is Bytes.LARGER:
        return np.maximum(sent, received)
    return np.zeros_like(sent)


def scale_values(scale: Scale, processes: FloatArray) -> FloatArray:
    """Return a scale of the table for numbers of processes (at least 1)."""
    p: FloatArray = np.maximum(processes, 1.0)
    if scale is Scale.LOG:
        return np.asarray(np.log2(p))
    if scale is Scale.OTHERS:
        return p - 1.0
    if scale is Scale.SHARE:
        return (p - 1.0) / p
    return np.ones_like(p)


def scale_model(scale: Scale, processes: Model) -> Model | None:
    """Return a scale as a model if the number of processes is a parameter or a constant; else None."""
    names = processes.parameters
    if scale is Scale.ONE:
        return Model(names, 1.0)
    if not processes.terms:
        value = scale_values(scale, np.array([processes.constant]))
        return Model(names, float(value[0]))
    if len(processes.terms) > 1 or abs(processes.constant) > 1e-9:
        return None
    term = processes.terms[0]
    if len(term.factors) != 1 or abs(term.coefficient - 1.0) > 1e-9:
        return None
    factor = term.factors[0]
    if factor.exponent != 1 or factor.log or not factor.is_plain:
        return None
    name = factor.parameter
    if scale is Scale.LOG:
        return Model(names, 0.0, (Term(1.0, (Factor(name, log=1),)),))
    if scale is Scale.SHARE:
        return Model(names, 0.0, (Term(1.0, (Factor(name, shares=1),)),))
    return Model(names, -1.0, (Term(1.0, (Factor(name, Fraction(1)),)),))


# Lower bounds of the coefficients (seconds per call, seconds per byte): no network and no memory is faster. The bounds
# keep the order of growth of a prior if noise hides one of its terms.
LEAST = {"α": 1e-9, "β": 1e-12, "γ": 0.0}


def with_overhead(alone: Prior, calls: Model) -> Prior:
    """Return the prior of calls with a constant time for each call: o of LogP.

    Culler and others, LogP (PPoPP 1993): o is the time that a processor needs for each message. Small communicators,
    with few steps, show it. alone: the prior without this effect. calls: per rank.
    """
    columns, least = (*alone.columns, replace(calls, covariance=())), (*alone.least, LEAST["α"])
    return replace(alone, columns=columns, text=f"{alone.text} + o·visits", least=least)


def prior(row: Row, region: str, columns: dict[str, Model], details: str) -> Prior:
    """Return the prior of a call path from the models of the columns α, β, γ of its row.

    Columns that are 0 everywhere are omitted, and so is γ if it is proportional to β.
    """
    kept: dict[str, Model] = {}
    for symbol, column in columns.items():
        nothing = column.constant == 0.0 and not column.terms
        if not nothing and (column.constant, column.terms) not in [(m.constant, m.terms) for m in kept.values()]:
            kept[symbol] = column
    text = row.text + (f", {details}" if details else "")
    least = tuple(LEAST[symbol] for symbol in kept)
    # calls and bytes have common uncertainty; separate columns would count it twice
    certain = tuple(replace(column, covariance=()) for column in kept.values())
    return Prior(certain, f"table I: {region}", f"{text} [{row.source}]", least=least)
