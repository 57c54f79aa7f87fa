# SPDX-License-Identifier: Apache-2.0
"""Write the effects of the parameters of a tensor model as one HTML file: curves or bars, and effects of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from quipu.modeling.experiment import FloatArray
from quipu.modeling.tensor.explain import Beyond, Effect, Pair, Tried
from quipu.modeling.tensor.growth import ErrorAt

from ..figures import GEOMETRIC
from ..text import factor, number, percent
from .page import render

WIDTH, HEIGHT = 320.0, 150.0  # size of a drawing and its margins, in units of SVG
LEFT, RIGHT, TOP, BOTTOM = 54.0, 10.0, 10.0, 24.0
MOST_LABELS = 8
LABEL_LENGTH = 8
STYLE = (
    ".effects { display: flex; flex-wrap: wrap; gap: 16px; } .effects figure { margin: 0; width: 330px; } "
    ".effects svg { width: 100%; } .effects text { font-size: 10px; fill: var(--dim); } "
    ".effects path { fill: none; stroke: var(--accent); stroke-width: 2; } .effects rect { fill: var(--bar); } "
    ".effects line { stroke: var(--line); } .effects circle { fill: none; stroke: var(--dim); } "
    ".effects circle.kept { fill: var(--accent); stroke: var(--accent); } "
    ".effects path.beyond { stroke-dasharray: 4 3; } "
    ".effects path.interval { fill: var(--bar); stroke: none; opacity: 0.35; } "
    ".pairs td, .pairs th { text-align: left; padding: 4px 10px; }"
)


@dataclass(frozen=True)
class _Drawing:
    """The drawing of the effect of a parameter: a curve; for a parameter with words as values, a bar for each value.

    path: path of SVG, empty for bars. bars: x, y, width, height. marks: labels (x, y, text, anchor). mean: y of the
    mean. ratio: largest divided by smallest effect, as text.
    """

    effect: Effect
    path: str
    bars: tuple[tuple[float, float, float, float], ...]
    marks: tuple[tuple[float, float, str, str], ...]
    mean: float
    ratio: str


@dataclass(frozen=True)
class _Choice:
    """The drawing of the tried models: error over size.

    points: x, y, whether the model was selected, description. path: line through the selected models. marks: labels (x,
    y, text, anchor).
    """

    points: tuple[tuple[float, float, bool, str], ...]
    path: str
    marks: tuple[tuple[float, float, str, str], ...]


@dataclass(frozen=True)
class _Curve:
    """The drawing of a curve.

    path, beyond: paths of SVG inside and outside of the measured range. band: path around the interval. edge: x of the
    end of the measured range. marks: labels (x, y, text, anchor).
    """

    caption: str
    path: str
    beyond: str
    band: str
    edge: float
    marks: tuple[tuple[float, float, str, str], ...]


def html_effects(
    title: str,
    target: str,
    effects: Sequence[Effect],
    pairs: Sequence[Pair],
    notes: Sequence[str],
    tried: Sequence[Tried] = (),
    beyond: Sequence[Beyond] = (),
    growth: Sequence[ErrorAt] = (),
) -> str:
    """Return the effects of parameters and of pairs of parameters as the text of one HTML file.

    - target: name of the predicted quantity, such as the time.
    - tried: models that were tried, drawn as error over size. growth: error by number of rows of the measurements.
    - beyond: predictions beyond the measured values, drawn with a dashed line and their interval.
    """
    values = {
        "title": title,
        "target": target,
        "drawings": [_drawn(effect) for effect in effects],
        "pairs": pairs,
        "notes": notes,
        "size": (WIDTH, HEIGHT, LEFT, WIDTH - RIGHT),
        "choice": _choice([one for one in tried if one.error > 0]),
        "beyond": [_beyond(one) for one in beyond],
        "growth": _growth([one for one in growth if one.error > 0]),
    }
    return render("tensor.html", STYLE, **values)


def _choice(tried: Sequence[Tried]) -> _Choice | None:
    if not tried:
        return None
    sizes, errors = np.log([one.size for one in tried]), np.log([one.error for one in tried])
    across = LEFT + (sizes - sizes.min()) / max(float(np.ptp(sizes)), 1e-9) * (WIDTH - LEFT - RIGHT - 8.0) + 4.0
    heights = TOP + (errors.max() - errors) / max(float(np.ptp(errors)), 1e-9) * (HEIGHT - TOP - BOTTOM)
    points = tuple(
        (round(x, 1), round(y, 1), one.kept, f"{one.name}: {percent(one.error)}, {number(one.size)} numbers")
        for x, y, one in zip(across.tolist(), heights.tolist(), tried, strict=True)
    )
    path = "M" + "L".join(f"{x},{y}" for x, y, kept, _ in points if kept)
    sides = {int(errors.argmax()), int(errors.argmin())}
    marks = [(LEFT - 4.0, points[at][1] + 3.0, percent(tried[at].error), "end") for at in sides]
    for at, anchor in ((int(sizes.argmin()), "start"), (int(sizes.argmax()), "end")):
        marks.append((points[at][0], HEIGHT - 4.0, number(tried[at].size), anchor))
    return _Choice(points, path, tuple(marks))


def _beyond(one: Beyond) -> _Curve:
    values, edge = np.array(one.values), one.inside - 1
    places = np.log(values) if values[0] > 0 and values[-1] / values[0] >= GEOMETRIC else values
    across = LEFT + (places - places[0]) / (places[-1] - places[0]) * (WIDTH - LEFT - RIGHT)
    low, high = float(one.low.min()), float(one.high.max())
    heights = [
        TOP + (high - part) / max(high - low, 1e-9) * (HEIGHT - TOP - BOTTOM) for part in (one.logs, one.low, one.high)
    ]
    band = _path(np.concatenate([across, across[::-1]]), np.concatenate([heights[1], heights[2][::-1]])) + "Z"
    marks = [(LEFT - 4.0, TOP + 3.0, factor(float(np.exp(high))), "end")]
    marks.append((LEFT - 4.0, HEIGHT - BOTTOM + 3.0, factor(float(np.exp(low))), "end"))
    for at, anchor in ((0, "start"), (edge, "end"), (-1, "end")):
        marks.append((round(float(across[at]), 1), HEIGHT - 8.0, number(float(values[at])), anchor))
    caption = (
        f"{one.parameter}: extrapolated beyond {number(float(values[edge]))} ({', '.join(one.forms) or 'as there'})"
    )
    inside, outside = (_path(across[part], heights[0][part]) for part in (slice(edge + 1), slice(edge, None)))
    return _Curve(caption, inside, outside, band, round(float(across[edge]), 1), tuple(marks))


def _growth(errors: Sequence[ErrorAt]) -> _Curve | None:
    if len(errors) < 2:
        return None
    rows, logs = np.log([one.rows for one in errors]), np.log([one.error for one in errors])
    across = LEFT + (rows - rows[0]) / (rows[-1] - rows[0]) * (WIDTH - LEFT - RIGHT)
    heights = TOP + (logs.max() - logs) / max(float(np.ptp(logs)), 1e-9) * (HEIGHT - TOP - BOTTOM)
    marks = [(LEFT - 4.0, float(heights[at]) + 3.0, percent(errors[at].error), "end") for at in (0, -1)]
    marks += [(float(across[at]), HEIGHT - 4.0, f"{errors[at].rows}", side) for at, side in ((0, "start"), (-1, "end"))]
    return _Curve("Error on held-out rows by the number of rows", _path(across, heights), "", "", 0.0, tuple(marks))


def _path(across: FloatArray, heights: FloatArray) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, heights, strict=True))


def _drawn(effect: Effect) -> _Drawing:
    logs = np.asarray(effect.logs)
    low, high = min(float(logs.min()), 0.0), max(float(logs.max()), 0.0)
    span = max(high - low, 1e-9)
    heights = TOP + (high - logs) / span * (HEIGHT - TOP - BOTTOM)
    mean = TOP + high / span * (HEIGHT - TOP - BOTTOM)
    marks = [(LEFT - 4.0, TOP + (high - log) / span * (HEIGHT - TOP - BOTTOM) + 3.0, factor(float(np.exp(log))), "end")
             for log in sorted({low, 0.0, high})]  # fmt: skip
    numbers = [value for value in effect.values if not isinstance(value, str)]
    room = WIDTH - LEFT - RIGHT
    if len(numbers) < len(effect.values) or len(numbers) < 2:
        step = room / len(logs)
        bars = tuple(
            (round(LEFT + at * step + 0.1 * step, 1), round(min(height, mean), 1), round(0.8 * step, 1),
             round(max(abs(mean - height), 0.5), 1))
            for at, height in enumerate(heights.tolist())
        )  # fmt: skip
        shown = range(0, len(logs), -(-len(logs) // MOST_LABELS))
        marks += [
            (round(LEFT + (at + 0.5) * step, 1), HEIGHT - 8.0, _label(effect.values[at]), "middle") for at in shown
        ]
        return _Drawing(effect, "", bars, tuple(marks), round(mean, 1), factor(float(np.exp(np.ptp(logs)))))
    values = np.array(numbers)
    places = np.log(values) if values.min() > 0 and values.max() / values.min() >= GEOMETRIC else values
    across = LEFT + (places - places[0]) / (places[-1] - places[0]) * room
    path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, heights, strict=True))
    for at, anchor in ((0, "start"), (int(np.argmin(np.abs(across - across.mean()))), "middle"), (-1, "end")):
        marks.append((round(float(across[at]), 1), HEIGHT - 8.0, number(numbers[at]), anchor))
    return _Drawing(effect, path, (), tuple(marks), round(mean, 1), factor(float(np.exp(np.ptp(logs)))))


def _label(value: float | str) -> str:
    text = value if isinstance(value, str) else number(value)
    return text if len(text) <= LABEL_LENGTH else text[: LABEL_LENGTH - 1] + "…"
