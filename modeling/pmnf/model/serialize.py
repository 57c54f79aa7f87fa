# SPDX-License-Identifier: Apache-2.0
"""Convert models to and from plain JSON data (dicts, lists, numbers, text)."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

from ...documents import typed
from ...errors import FormatError
from ...process_grid import MOST_DIMENSIONS, is_rule
from .model import Model
from .steps import BASES
from .term import FUNCTIONS, Factor, Function, Term

_QUALITY = ("smape", "rms_relative", "r2", "adjusted_r2", "cross_validated")


def to_json(model: Model) -> dict[str, Any]:
    """Return the model as JSON data. Exponents are text such as "2/3", so that they are not rounded."""
    data: dict[str, Any] = {
        "parameters": list(model.parameters),
        "constant": model.constant,
        "terms": [_term_to_json(term) for term in model.terms],
        "text": str(model),
    }
    if model.quality is not None:
        values = {name: getattr(model.quality, name) for name in _QUALITY}
        data["quality"] = {name: None if math.isnan(value) else value for name, value in values.items()}
        data["quality"]["points"] = model.quality.points
    if model.ranges:
        data["ranges"] = [list(pair) for pair in model.ranges]
    if model.covariance:
        data["covariance"] = [list(row) for row in model.covariance]
    if model.alternatives:
        data["alternatives"] = [
            {"weight": a.weight, "constant": a.constant, "terms": [_term_to_json(t) for t in a.terms]}
            | ({"hidden": True} if a.hidden else {})
            for a in model.alternatives
        ]
    if model.notes:
        data["notes"] = list(model.notes)
    if model.absent:
        data["absent"] = [list(pair) for pair in model.absent]
    return data


def from_json(data: object, source: object = "model") -> Model:
    """Return the model of data that `to_json` returned. Raises FormatError, with `source` and the entry, otherwise."""
    if isinstance(data, dict):
        for name in ("parameters", "constant", "terms"):
            if name not in data:
                raise FormatError(source, f"{name} of a model is missing")
        if isinstance(quality := data.get("quality"), dict):
            numbers = {name: math.nan if quality.get(name) is None else quality[name] for name in _QUALITY}
            data = {**data, "quality": quality | numbers}
    model = typed(data, Model, source)
    model = replace(model, covariance=tuple(model.covariance), alternatives=tuple(model.alternatives))
    if len(set(model.parameters)) != len(model.parameters):
        raise FormatError(source, "a model names a parameter twice")
    if model.ranges and len(model.ranges) != len(model.parameters):
        raise FormatError(source, "ranges of a model must be one pair per parameter")
    if unknown := {name for name, _ in model.absent}.difference(model.parameters):
        raise FormatError(source, f"absent names parameter {min(unknown)!r}, which the model does not declare")
    size = len(model.terms) + 1
    sizes = {len(model.covariance), *map(len, model.covariance)}
    parameters = len(model.parameters)
    if model.covariance and sizes not in ({size}, {size * (1 + parameters) + parameters}):
        whole = f"or of {size * (1 + parameters) + parameters}, with exponents and curvatures"
        raise FormatError(source, f"covariance must be a square of {size} rows, one per coefficient, {whole}")
    for term in (*model.terms, *(term for other in model.alternatives for term in other.terms)):
        _check_term(term, model.parameters, source)
    return model


def _term_to_json(term: Term) -> dict[str, Any]:
    """Return a term as JSON data; factors of the same variable are combined."""
    if not term.is_short:
        term = Term(1.0, ()).times(term)
    return {"coefficient": term.coefficient, "factors": [_factor_to_json(factor) for factor in term.factors]}


def _factor_to_json(factor: Factor) -> dict[str, Any]:
    data: dict[str, Any] = {"parameter": factor.parameter, "exponent": str(factor.exponent), "log": factor.log}
    if factor.shares:
        data["shares"] = factor.shares
    if factor.several:
        data["several"] = True
    if factor.axis is not None:
        data["axis"] = asdict(factor.axis)
    if factor.steps is not None:
        data["steps"] = asdict(factor.steps)
    if factor.blocks is not None:
        product = [_factor_to_json(own) for own in factor.blocks.product]
        data["blocks"] = {"size": factor.blocks.size, "product": product, "power": factor.blocks.power}
    if factor.function is not None:
        argument = [_term_to_json(term) for term in factor.function.argument]
        numbers = list(factor.function.numbers)
        data["function"] = {"kind": factor.function.kind, "argument": argument, "numbers": numbers}
    return data


def _check_term(term: Term, parameters: tuple[str, ...], source: object) -> None:
    """Raise FormatError if a factor of a term is not valid in a model with these parameters."""
    names = {name for factor in term.factors for name in (factor.parameter, *factor.parameters)}
    if not term.is_short:
        raise FormatError(source, "a term has two factors of one function of a parameter")
    for axis in (factor.axis for factor in term.factors if factor.axis is not None):
        if not 0 <= axis.index < axis.dimensions <= MOST_DIMENSIONS or not is_rule(axis.rule, axis.dimensions):
            raise FormatError(source, f"a term has an extent of an unknown process grid: {axis}")
    for steps in (factor.steps for factor in term.factors if factor.steps is not None):
        if steps.base not in BASES or steps.unit < 1:
            raise FormatError(source, f"a term has steps of an unknown kind: {steps}")
    for blocks in (factor.blocks for factor in term.factors if factor.blocks is not None):
        if blocks.size < 2 or not blocks.power or not blocks.product or not all(own.is_plain for own in blocks.product):
            raise FormatError(source, f"a term has blocks of an unknown kind: {blocks}")
    for function in (factor.function for factor in term.factors if factor.function is not None):
        if FUNCTIONS.get(function.kind) != len(function.numbers) or not _is_defined(function):
            raise FormatError(source, f"a term has a function of an unknown kind: {function.kind}")
        for own in function.argument:
            _check_term(own, parameters, source)
    if unknown := names.difference(parameters):
        raise FormatError(source, f"a term uses parameter {min(unknown)!r}, which the model does not declare")


def _is_defined(function: Function) -> bool:
    """Return whether the argument has a parameter, and the smallest size of "levels" is positive."""
    return bool(function.parameters) and (function.kind != "levels" or function.numbers[0] > 0)
