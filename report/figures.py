# SPDX-License-Identifier: Apache-2.0
"""Create figures of matplotlib (`pip install 'quipu[plots]'`) without its module pyplot, which has global state."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

from quipu.modeling.errors import EnvironmentProblem
from quipu.modeling.printable import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# An axis is logarithmic if the ratio of its largest to its smallest value is at least this number.
GEOMETRIC = 8.0


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure. width, height: inches. Raises EnvironmentProblem if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EnvironmentProblem("plots need matplotlib: pip install 'quipu[plots]'") from error

    class ShownFigure(Figure):
        """A figure that notebooks show as an image. They show other figures without pyplot as the name of the class."""

        def _repr_png_(self) -> bytes:
            content = BytesIO()
            self.savefig(content, format="png")
            return content.getvalue()

    return ShownFigure(figsize=(width, height), layout="constrained")


def plain(text: str) -> str:
    """Return a text in one line in which matplotlib does not interpret $ as the begin of a formula."""
    return one_line(text).replace("$", r"\$")
