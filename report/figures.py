# SPDX-License-Identifier: Apache-2.0
"""Figures of matplotlib (`pip install 'quipu[plots]'`) without its global state."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from quipu.modeling.errors import EnvironmentProblem
from quipu.modeling.printable import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# An axis is logarithmic if the ratio of its values is at least this number.
GEOMETRIC = 8.0


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches that notebooks show. Raises EnvironmentProblem without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EnvironmentProblem("plots need matplotlib: pip install 'quipu[plots]'") from error

    class ShownFigure(Figure):
        """A figure that IPython shows as an image; without pyplot it would show the name of the class."""

        def _repr_png_(self) -> bytes:
            content = BytesIO()
            self.savefig(content, format="png")
            return content.getvalue()

    return ShownFigure(figsize=(width, height), layout="constrained")


def plain(text: str) -> str:
    """Return text that matplotlib does not read as mathematics."""
    return one_line(text).replace("$", r"\$")
