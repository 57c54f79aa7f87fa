"""Text for people: numbers with units, names cut to a width, glyphs that the output can show."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass

from quipu.modeling.experiment import Metric
from rich.cells import cell_len

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


@dataclass(frozen=True)
class Glyphs:
    """The characters of a view; `ASCII` for outputs whose encoding cannot show more."""

    branch: str
    last: str
    bar: str
    blank: str
    ellipsis: str
    dot: str
    micro: str
    good: str
    bad: str
    warning: str
    unicode: bool


UNICODE = Glyphs("├─ ", "└─ ", "│  ", "   ", "…", "·", "µ", "✓", "✗", "!", True)
ASCII = Glyphs("|- ", "`- ", "|  ", "   ", "...", "*", "u", "ok", "no", "!", False)


@dataclass(frozen=True)
class Layout:
    """What a view may use: width in columns and the glyphs."""

    width: int = 100
    glyphs: Glyphs = UNICODE


_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_DIGITS = str.maketrans(_SUPERSCRIPTS, "0123456789")
_POWER = re.compile(f"[{_SUPERSCRIPTS}]+")
_SPELLED = str.maketrans({"·": "*", "…": "...", "→": "->", "µ": "u", "−": "-", "–": "-", "α": "a", "β": "b", "γ": "c"})


def clean(text: str, glyphs: Glyphs = UNICODE) -> str:
    """Return text from a program without what could move a cursor: control characters become `?`.

    With ASCII glyphs formulas are spelled out (`n^3*log2(p)`), and what is left outside of ASCII becomes `?` too.
    """
    if glyphs.unicode:
        return "".join("?" if unicodedata.category(character)[0] == "C" else character for character in text)
    spelled = _POWER.sub(lambda power: "^" + power.group().translate(_DIGITS), text).translate(_SPELLED)
    return "".join(character if " " <= character <= "~" else "?" for character in spelled)


def elide(text: str, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Return `text` in at most `width` columns; what does not fit is left out in the middle."""
    if cell_len(text) <= width:
        return text
    room = width - len(glyphs.ellipsis)
    if room < 2:
        return _head(text, width)
    tail = room // 2
    return _head(text, room - tail) + glyphs.ellipsis + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    taken = 0
    for at, character in enumerate(text):
        taken += cell_len(character)
        if taken > width:
            return text[:at]
    return text


def quantity(value: float, unit: str = "1", glyphs: Glyphs = UNICODE) -> str:
    """Return a number with its unit in at most nine columns: `1.23 ms`, `45.6 MB`, `12345`, `3.40 G`.

    NaN (not measured) is `-`.
    """
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if unit == "s":
        return _seconds(value, glyphs)
    suffix = "" if unit in ("1", "") else unit
    magnitude = abs(value)
    if magnitude < 99999.5 and (value == round(value) or magnitude >= 9999.5):
        return f"{value:.0f} {suffix}".rstrip()
    if magnitude < 999.5:
        return f"{_three(value)} {suffix}".rstrip()
    for factor, prefix in _PREFIXES:
        if magnitude >= factor * 0.9995:
            return (
                f"{_three(value / factor)} {prefix}{suffix}" if magnitude < 1e18 else f"{value:.2e} {suffix}".rstrip()
            )
    return f"{value:.3g} {suffix}".rstrip()


def _seconds(value: float, glyphs: Glyphs) -> str:
    if value == 0:
        return "0 s"
    if abs(value) >= 99999.5:
        return f"{value:.3e} s"
    for factor, unit in _TIMES:
        if abs(value) >= factor * 0.9995 or factor == 1e-9:
            return f"{_three(value / factor)} {unit.replace('us', glyphs.micro + 's')}"
    raise AssertionError("the last unit takes everything")


def _three(value: float) -> str:
    """Three significant digits without an exponent where that is short."""
    magnitude = abs(value)
    if magnitude == 0:
        return "0"
    if magnitude < 1e-3:
        return f"{value:.1e}"
    decimals = 0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2 if magnitude >= 0.9995 else 3
    return f"{value:.{decimals}f}"


def measured(value: float, metric: Metric, glyphs: Glyphs = UNICODE) -> str:
    """Return a value of a metric with its unit."""
    return quantity(value, metric.unit, glyphs)


def percent(fraction: float) -> str:
    """Return a fraction as percent with one decimal; NaN is `-`."""
    return "-" if math.isnan(fraction) else f"{100 * fraction:.1f}%"


def number(value: float) -> str:
    """Return a parameter value: integers without a point, others with up to six digits."""
    if value == round(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.6g}"


def point_text(parameters: tuple[str, ...], values: tuple[float, ...]) -> str:
    """Return a measurement point as text: `p=4, n=100000`."""
    return (
        ", ".join(f"{name}={number(value)}" for name, value in zip(parameters, values, strict=True)) or "no parameters"
    )
