"""Parsed JSON and TOML of others as typed values: one error that names the key at fault."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, TypeVar

import msgspec

from .errors import FormatError

Value = TypeVar("Value")
_LARGEST = 1e300
_PLAIN = {"object": "an object", "array": "a list", "str": "text", "int": "a whole number", "float": "a number"}
_PLAIN |= {"int | float": "a finite number", "bool": "true or false", "null": "nothing"}
Real = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
"""A finite number (not a number passes no comparison)."""
Number = int | Real
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Positive = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
Whole = Annotated[int, msgspec.Meta(gt=-(1 << 31), lt=1 << 31)]


def typed(content: object, kind: type[Value], source: object) -> Value:
    """Return parsed content as a value of `kind`, a dataclass with types of msgspec; other keys are passed over.

    Raises FormatError that names `source`, the key at fault and what should be there.
    """
    try:
        return msgspec.convert(content, kind, strict=True, dec_hook=_fraction)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        what = re.sub(r"^Expected `float`( [<>]= \S+)?", "Expected `int | float`", what)
        what = re.sub(r"`([\w |]+)`", lambda found: _PLAIN.get(found[1], found[0]), what)
        where = _named(content, kind, path.removesuffix("`")).removeprefix(".") or "the document"
        what = f": {what[:1].lower()}{what[1:]}".replace(": expected", " must be").replace(", got ", ", not ")
        raise FormatError(source, where + what) from None


def _fraction(_kind: type[Fraction], value: str) -> Fraction:
    """Return the value of a field that msgspec does not know the type of: exponents, as text."""
    try:
        return Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise ValueError(f"{value!r} is no fraction such as 2/3") from None


def _named(content: object, kind: type[object], path: str) -> str:
    """Return a path of msgspec, which writes `[...]` for the key of a mapping, with the first key that is at fault."""
    before, unnamed, after = path.partition("[...]")
    if not unnamed or not isinstance(content, dict):
        return path
    keys = before.removeprefix(".").split(".")
    if len(keys) != 1 or not isinstance(entries := content.get(keys[0]), Mapping):
        return path
    for key, value in entries.items():
        try:
            msgspec.convert({**content, keys[0]: {key: value}}, kind, strict=True, dec_hook=_fraction)
        except msgspec.ValidationError:
            return f"{before}.{key}{after}"
    return path
