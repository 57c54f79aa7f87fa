"""Models to and from plain JSON data (dicts, lists, numbers, text)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ...errors import FormatError
from .model import Alternative, Model, Quality
from .term import Factor, Term

_QUALITY = ("smape", "rms_relative", "r2", "adjusted_r2", "cross_validated")


def to_json(model: Model) -> dict[str, Any]:
    """Return the model as JSON data; exponents are text such as "2/3", so that nothing is rounded."""
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
            for a in model.alternatives
        ]
    if model.notes:
        data["notes"] = list(model.notes)
    return data


def from_json(data: object, source: object = "model") -> Model:
    """Return the model that `to_json` wrote. FormatError, naming `source` and the entry, if it is not one."""
    entry = expect_object(data, source, "a model")
    parameters = tuple(expect_text(name, source, "parameters") for name in expect_list(entry, "parameters", source))
    if len(set(parameters)) != len(parameters):
        raise FormatError(source, "a model names a parameter twice")
    quality = None
    if "quality" in entry:
        raw = expect_object(entry["quality"], source, "quality")
        numbers = [_optional_number(raw.get(name), source, f"quality.{name}") for name in _QUALITY]
        points = _count(raw.get("points"), source, "quality.points")
        quality = Quality(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], points)
    ranges = tuple(_range(pair, source) for pair in expect_list(entry, "ranges", source, optional=True))
    if ranges and len(ranges) != len(parameters):
        raise FormatError(source, "ranges of a model must be one pair per parameter")
    return Model(
        parameters,
        expect_number(entry.get("constant"), source, "constant"),
        _terms(entry, parameters, source),
        quality,
        ranges,
        _covariance(entry, source),
        tuple(_alternative(a, parameters, source) for a in expect_list(entry, "alternatives", source, optional=True)),
        tuple(expect_text(note, source, "notes") for note in expect_list(entry, "notes", source, optional=True)),
    )


def _term_to_json(term: Term) -> dict[str, Any]:
    factors = []
    for factor in term.factors:
        data: dict[str, Any] = {"parameter": factor.parameter, "exponent": str(factor.exponent), "log": factor.log}
        if factor.shares:
            data["shares"] = factor.shares
        factors.append(data)
    return {"coefficient": term.coefficient, "factors": factors}


def _terms(entry: Mapping[str, Any], parameters: tuple[str, ...], source: object) -> tuple[Term, ...]:
    return tuple(_term(raw, parameters, source) for raw in expect_list(entry, "terms", source))


def _term(raw: object, parameters: tuple[str, ...], source: object) -> Term:
    data = expect_object(raw, source, "a term")
    factors = tuple(_factor(f, parameters, source) for f in expect_list(data, "factors", source))
    if len({factor.parameter for factor in factors}) != len(factors):
        raise FormatError(source, "a term has two factors of one parameter")
    return Term(expect_number(data.get("coefficient"), source, "coefficient"), factors)


def _factor(raw: object, parameters: tuple[str, ...], source: object) -> Factor:
    data = expect_object(raw, source, "a factor")
    name = expect_text(data.get("parameter"), source, "parameter")
    if name not in parameters:
        raise FormatError(source, f"a term uses parameter {name!r}, which the model does not declare")
    try:
        exponent = Fraction(expect_text(data.get("exponent", "0"), source, "exponent"))
    except (ValueError, ZeroDivisionError):
        raise FormatError(source, f"exponent {data.get('exponent')!r} is no fraction such as 2/3") from None
    return Factor(
        name, exponent, _count(data.get("log", 0), source, "log"), _count(data.get("shares", 0), source, "shares")
    )


def _alternative(raw: object, parameters: tuple[str, ...], source: object) -> Alternative:
    data = expect_object(raw, source, "an alternative")
    weight = expect_number(data.get("weight"), source, "weight")
    return Alternative(
        weight, expect_number(data.get("constant"), source, "constant"), _terms(data, parameters, source)
    )


def _covariance(entry: Mapping[str, Any], source: object) -> tuple[tuple[float, ...], ...]:
    rows = expect_list(entry, "covariance", source, optional=True)
    size = len(expect_list(entry, "terms", source)) + 1
    if rows and (len(rows) != size or any(not isinstance(row, list) or len(row) != size for row in rows)):
        raise FormatError(source, f"covariance must be a square of {size} rows, one per coefficient")
    return tuple(tuple(expect_number(value, source, "covariance") for value in row) for row in rows)


def _range(raw: object, source: object) -> tuple[float, float]:
    if not isinstance(raw, list) or len(raw) != 2:
        raise FormatError(source, "a range must be a pair [lowest, highest]")
    return expect_number(raw[0], source, "ranges"), expect_number(raw[1], source, "ranges")


def _count(value: object, source: object, name: str) -> int:
    number = expect_number(value, source, name)
    if number != int(number):
        raise FormatError(source, f"{name} must be a whole number, not {value!r}")
    return int(number)


def _optional_number(value: object, source: object, name: str) -> float:
    return math.nan if value is None else expect_number(value, source, name)


def expect_number(value: object, source: object, name: str) -> float:
    """Return a finite number, or raise FormatError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise FormatError(source, f"{name} must be a finite number, not {value!r}")
    return float(value)


def expect_text(value: object, source: object, name: str) -> str:
    """Return text, or raise FormatError."""
    if not isinstance(value, str):
        raise FormatError(source, f"{name} must be text, not {value!r}")
    return value


def expect_object(value: object, source: object, name: str) -> Mapping[str, Any]:
    """Return a JSON object, or raise FormatError."""
    if not isinstance(value, dict):
        raise FormatError(source, f"{name} must be an object, not {type(value).__name__}")
    return value


def expect_list(entry: Mapping[str, Any], name: str, source: object, optional: bool = False) -> list[Any]:
    """Return the list entry `name`, or raise FormatError."""
    if optional and name not in entry:
        return []
    value = entry.get(name)
    if not isinstance(value, list):
        raise FormatError(source, f"{name} must be a list")
    return value
