# SPDX-License-Identifier: Apache-2.0
"""Short texts of call paths for sentences and legends, shortened as in tables."""

from __future__ import annotations

from quipu.modeling.experiment import CallTree
from quipu.modeling.short_names import IN_TEXT, shorten

from .text import path_text
from .views import steps


def short_label(tree: CallTree, path: int) -> str:
    """Return a call path such as `main->solve` in at most 60 columns.

    To shorten it, arguments and scopes of C++ names are left out first.
    """
    return shorten(path_text(steps(tree, path)), IN_TEXT)
