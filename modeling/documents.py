# SPDX-License-Identifier: Apache-2.0
"""Convert untrusted JSON and TOML texts to typed values. Memory and depth are limited. Errors name the wrong key."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, TypeVar

import msgspec

from .errors import FormatError
from .limits import DEPTH, current, limit

Value = TypeVar("Value")
_LARGEST = 1e300
_LONGEST_FRACTION = 40
_LINE = re.compile(r"\(at line (\d+),")
# CPython 3.11 needs 56 bytes for an empty list, 64 for an empty object, 24 for a float, and 8 per element of a list.
_OBJECT_BYTES, _ENTRY_BYTES = 72, 40
_UNSTRUCTURED = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_PARAMETER = re.compile(r"[A-Za-z_]\w*")
_DOTTED = re.compile(r"(?:[\w-]++[ \t]*+\.[ \t]*+)+")
_NAMES = re.compile(rb'"[^"]*"')
_PLAIN = {"object": "an object", "array": "a list", "str": "text", "int": "a whole number", "float": "a number"}
_PLAIN |= {"int | float": "a finite number", "bool": "true or false", "null": "nothing"}
Real = Annotated[float, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
"""A finite number of at most 1e300 in magnitude (NaN fails the comparisons)."""
Number = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] | Real
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]
Positive = Annotated[int, msgspec.Meta(ge=1, lt=1 << 31)]
Whole = Annotated[int, msgspec.Meta(gt=-(1 << 31), lt=1 << 31)]


def typed(content: object, kind: type[Value], source: object, within: str = "", whole: str = "the document") -> Value:
    """Return parsed content as a value of `kind`, a dataclass with types of msgspec. Further keys are ignored.

    source: name of the file in errors. within: the key under which the document contains this content. whole: the name
    of the content itself in errors. Raises FormatError with the wrong key and the expected type.
    """
    try:
        return msgspec.convert(content, kind, strict=True, dec_hook=_fraction)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        what = re.sub(r"^Expected `float`( [<>]= -?1e\+300$)?", "Expected `int | float`", what)
        what = re.sub(r"`([\w |]+)`", lambda found: _plain(found[1]), what)
        where = (within + _named(content, kind, path.removesuffix("`"))).removeprefix(".") or whole
        what = f": {what[:1].lower()}{what[1:]}".replace(": expected", " must be").replace(", got ", ", not ")
        raise FormatError(source, (where + what).removeprefix(": ")) from None
    except UnicodeEncodeError as error:
        raise FormatError(source, "contains half of a character (\\ud800 to \\udfff)") from error


def _plain(kind: str) -> str:
    """Return the name of a type in plain words: `array | null` of msgspec becomes "a list or nothing"."""
    kinds = [kind] if kind in _PLAIN else kind.split(" | ")
    return " or ".join(_PLAIN.get(one, f"`{one}`") for one in kinds)


def is_parameter(name: str) -> bool:
    """Return whether a name is valid for a parameter: letters, digits and _, because names of folders contain it."""
    return _PARAMETER.fullmatch(name) is not None


def is_number(value: object) -> bool:
    """Return whether parsed content is a valid number for documents and parameters (`Number`)."""
    try:
        msgspec.convert(value, Number, strict=True)
    except msgspec.ValidationError:
        return False
    return True


def number_of(text: str) -> float | None:
    """Return the number in a text; None if it is no valid `Number`.

    Whole numbers are int if a float represents them exactly. Unlike float(), the function rejects spaces, `_`, digits
    of other alphabets, nan and inf.
    """
    try:
        value = float(text) if text.isascii() and not set(text) & set("_ \t\n\r\v\f") else math.nan
    except ValueError:
        return None
    if not abs(value) <= _LARGEST:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    return int(value) if value.is_integer() and abs(value) < 1 << 53 else value


def json_of(text: str, source: object, line: int | None = None) -> Any:
    """Return the value of a JSON text. The caller must check its size and depth with `check_document` before.

    line: line of the text in its file, None if the text is the whole file. Raises FormatError with the line.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = error.lineno if line is None else line
        raise FormatError(source, f"is not JSON (cut off?): {error.msg} at column {error.colno}", where) from error
    except RecursionError as error:
        raise FormatError(source, "is JSON that is nested too deep", line) from error
    except ValueError as error:  # an integer with thousands of digits
        raise FormatError(source, "holds a number with too many digits", line) from error


def toml_of(content: bytes, source: object) -> dict[str, Any]:
    """Return the content of a TOML file. Raises FormatError with the line, or as `check_document`."""
    try:
        text = content.decode("utf-8")
        check_document(content)
        if longest := max((found[0].count(".") for found in _DOTTED.finditer(text)), default=0):
            current().check_depth(longest)  # tomllib needs time proportional to depth²
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise FormatError(source, "is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        line = _LINE.search(str(error))
        raise FormatError(source, f"is not TOML: {error}", int(line.group(1)) if line else None) from error
    except RecursionError as error:
        raise FormatError(source, "is TOML that is nested too deep") from error
    except ValueError as error:  # an integer with thousands of digits
        raise FormatError(source, "holds a number with too many digits") from error


def check_document(content: bytes) -> None:
    """Check the memory and the depth that a JSON or TOML text will need. Raises FormatError beyond a limit (limits.py).

    The memory is an upper bound: it is computed from the number of characters that begin objects and separate entries,
    even if these are inside of texts.
    """
    cost = current()
    many_words = 1 if content.isascii() else 4  # bytes per character in memory
    cost.spend(many_words * len(content) + _ENTRY_BYTES * content.count(b","))
    structure = content.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _UNSTRUCTURED)
    structure = _NAMES.sub(b"", structure)
    cost.spend(_OBJECT_BYTES * (structure.count(b"[") + structure.count(b"{")) + len(structure))
    if len(structure) > 2 * limit(DEPTH):
        import numpy as np  # imported here to reduce the start time of commands

        brackets = np.frombuffer(structure, dtype=np.uint8)
        steps = np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1).astype(np.int8)
        cost.check_depth(int(np.cumsum(steps, dtype=np.int32).max()))
    cost.check_time()


def _fraction(_kind: type[Fraction], value: str) -> Fraction:
    """Return the fraction in a text. msgspec calls this function for exponents of models, which are stored as text."""
    return fraction_of(value)


def fraction_of(text: str) -> Fraction:
    """Return the fraction in a text such as 2/3. Raises ValueError for an invalid or long text."""
    try:
        # Fraction would expand 1e999999999, and accepts digits of all alphabets.
        if len(text) > _LONGEST_FRACTION or not text.isascii() or set(text.lower()) & set("e_"):
            raise ValueError
        return Fraction(text)
    except (TypeError, ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is not a fraction such as 2/3") from None


def _named(content: object, kind: type[object], path: str) -> str:
    """Return the path of an error with the first wrong key in place of `[...]`, which msgspec writes for mappings."""
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
