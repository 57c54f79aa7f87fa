# SPDX-License-Identifier: Apache-2.0
"""Format numbers, points and paths as text, for all views. report/html/templates/text.js formats in the same way."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from quipu.modeling.experiment import Experiment
from quipu.modeling.extrapolation import OPEN
from quipu.modeling.slowest_rank import SlowestRank

START_AND_END = "start and end of MPI"
OPEN_INTERVAL = "not determined"

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def quality_fact(quality: str) -> list[tuple[str, str]]:
    """Return a (label, text) pair about the quality of a measurement for the head of a view; empty if unknown."""
    return [("quality", quality)] if quality else []


def interval_text(low: float | None, high: float | None, unit: str) -> str:
    """Return the interval of a predicted value as text: `240 ms .. 310 ms`; "not determined" for a very wide interval.

    low, high: None if unknown.
    """
    ends = [end for end in (low, high) if end is not None]
    if high is not None and low is not None and 0.0 < OPEN * low < high:
        return OPEN_INTERVAL
    return " .. ".join(quantity(end, unit) for end in ends)


def quantity(value: float, unit: str = "1") -> str:
    """Return a number with its unit in at most nine columns: `1.23 ms`, `45.6 MB`, `12345`, `3.40 G`.

    NaN (not measured) is `-`.
    """
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return f"{value:.0f}"
    if unit == "ns":
        return quantity(value * 1e-9, "s")
    magnitude = abs(value)
    if unit == "s":
        if value == 0:
            return "0 s"
        if magnitude >= 99999.5:
            return f"{value:.3e} s"
        factor, name = next((entry for entry in _TIMES if magnitude >= entry[0] * 0.9995), _TIMES[-1])
        return f"{_three(value / factor)} {name}"
    suffix = "" if unit == "1" else unit
    if magnitude < 99999.5 and (value == round(value) or magnitude >= 999.5):
        return f"{value:.0f} {suffix}".rstrip()
    if magnitude < 999.5:
        return f"{_three(value)} {suffix}".rstrip()
    if magnitude >= 1e18:
        return f"{value:.2e} {suffix}".rstrip()
    factor, prefix = next(entry for entry in _PREFIXES if magnitude >= entry[0] * 0.9995)
    return f"{_three(value / factor)} {prefix}{suffix}"


def core_hours(hours: float) -> str:
    """Return core hours as text: `1.23 core h`; less than an hour as core seconds: `45.6 core s`."""
    return quantity(hours, "core h") if hours >= 1.0 else f"{_three(3600.0 * hours)} core s"


def _three(value: float) -> str:
    """Return a number with three significant digits; below 0.001 with two digits and an exponent."""
    magnitude = abs(value)
    if magnitude < 1e-3:
        return f"{value:.1e}" if value else "0"
    return f"{value:.{0 if magnitude >= 99.95 else 1 if magnitude >= 9.995 else 2 if magnitude >= 0.9995 else 3}f}"


def percent(fraction: float, decimals: int = 1) -> str:
    """Return a fraction as percent; NaN is `-`."""
    return "-" if math.isnan(fraction) else f"{100 * fraction:.{decimals}f}%"


def uncertain_percent(fraction: float, error: float) -> str:
    """Return a fraction as percent; `0 ±3.1%` if it is not larger than its error (a fraction)."""
    return percent(fraction) if abs(fraction) > error or not error else f"0 ±{percent(error)}"


def factor(value: float) -> str:
    """Return a growth factor as text: `1.5×`, `4096×`, `1.23e+07×`."""
    return f"{value:.0f}×" if 999.5 <= value < 1e6 else f"{value:.3g}×"


def beyond_text(beyond: Mapping[str, float]) -> str:
    """Return the ratios of a point to the measured range as text: `p 512×, n 4×`; empty inside of the range.

    beyond: ratios by parameter.
    """
    return ", ".join(f"{name} {factor(x)}" for name, x in beyond.items())


def number(value: float) -> str:
    """Return the value of a parameter as text: integers without a decimal point, others with up to six digits."""
    return str(int(value)) if value == round(value) and abs(value) < 1e15 else f"{value:.6g}"


def point_text(parameters: Sequence[str], values: Iterable[float]) -> str:
    """Return a configuration as text: `p=4, n=100000`."""
    pairs = zip(parameters, values, strict=True)
    return ", ".join(f"{name}={number(float(value))}" for name, value in pairs) or "no parameters"


def values_text(over: str, metrics: Collection[str]) -> str:
    """Return a text about the values of a view: how ranks are combined; with several threads also the kind of time.

    over: "mean", "max" or "sum". metrics: names of the metrics.
    """
    threads = "; time is wall time, thread_time the sum over threads" if "thread_time" in metrics else ""
    return f"{over} over ranks{threads}"


def slowest_rank_text(parameters: Sequence[str], slowest: SlowestRank, over: str) -> str:
    """Return a text about the slowest rank of a configuration. over: how the view combines ranks.

    Example: `54.1 ms at p=32, n=192, 8.55× the mean over ranks, and the run takes as long (--over-ranks max)`. If only
    statistics over ranks are known, both numbers are ranges.
    """
    seconds, times = quantity(slowest.high, "s"), factor(slowest.ratio)
    if slowest.low < slowest.high:
        seconds = f"{quantity(slowest.low, 's')} to {seconds} (of statistics over ranks)"
        times = f"{factor(slowest.low / slowest.mean)} to {times}"
    place = f" at {point_text(parameters, slowest.point)}" if parameters else ""
    hint = "" if over == "max" else " (--over-ranks max)"
    return f"{seconds}{place}, {times} the mean over ranks, and the run takes as long{hint}"


def ranges_text(parameters: Sequence[str], ranges: Iterable[tuple[float, float]]) -> str:
    """Return the measured ranges of parameters: `p = 1 to 16, n = 32 to 160`."""
    pairs = zip(parameters, ranges, strict=True)
    return ", ".join(f"{name} = {number(low)} to {number(high)}" for name, (low, high) in pairs) or "no parameters"


def points_text(parameters: Sequence[str], points: Sequence[Sequence[float]]) -> str:
    """Return a text with the number of configurations and the values of every parameter.

    Example: `10 configurations: p = 4, 8; n = 16, 24, 32, 48, 64`.
    """
    count = f"{len(points)} configuration{'' if len(points) == 1 else 's'}"
    columns = (sorted({float(point[at]) for point in points}) for at in range(len(parameters)))
    values = [f"{name} = {_listed(list(map(number, x)))}" for name, x in zip(parameters, columns, strict=True)]
    return f"{count}: {'; '.join(values)}" if values else count


def waiting_texts(experiments: Sequence[Experiment]) -> list[str]:
    """Return a text for each reason why times contain waiting for a processor, with the configurations.

    The reasons are oversubscription and load by other programs, in any of the experiments. All experiments have the
    same configurations.
    """
    first = experiments[0]
    shared = np.any([one.shares_processors for one in experiments], axis=0)
    loaded = np.any([one.disturbed for one in experiments], axis=0) & ~shared
    reasons = (("oversubscribed (more ranks than processors)", shared), ("on a loaded machine", loaded))
    return [
        f"{reason}: {points_text(first.parameters, first.points[which].tolist())}"
        for reason, which in reasons
        if which.any()
    ]


def _listed(texts: list[str]) -> str:
    return ", ".join(texts) if len(texts) <= 10 else f"{', '.join(texts[:8])}, … {texts[-1]} ({len(texts)} values)"


def path_text(path: Sequence[str]) -> str:
    """Return a call path as text: `main->solve`."""
    return "->".join(path)


def duration(seconds: float) -> str:
    """Return a duration: `40 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def near(path: str | Path) -> str:
    """Return a path, relative to the current folder if it is inside of this folder."""
    whole = Path(path)
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the measured program may have removed the current folder
        return str(path)
    return str(whole.relative_to(here)) if whole.is_absolute() and whole.is_relative_to(here) else str(path)
