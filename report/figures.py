"""Figures of matplotlib, which is there with `pip install 'quipu[plots]'`, without its global state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quipu.modeling.errors import EnvironmentProblem
from quipu.modeling.printable import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Ratio of values from which an axis is logarithmic.
GEOMETRIC = 8.0


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches. Raises EnvironmentProblem without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EnvironmentProblem("plots need matplotlib: pip install 'quipu[plots]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def plain(text: str) -> str:
    """Return text that matplotlib does not read as mathematics."""
    return one_line(text).replace("$", r"\$")
