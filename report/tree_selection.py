# SPDX-License-Identifier: Apache-2.0
"""Select the metrics and call paths of a call tree to show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .views import TreeOptions, TreeView, statistics

_FIRST = ("time", "visits", "blocks", "bytes_sent", "bytes_received")
_FIRST_OF_COUNTS = ("blocks", "visits", "bytes_sent", "bytes_received")


def default_metrics(view: TreeView) -> tuple[str, ...]:
    """Return the metrics that a view shows by default: the usual ones that are not 0 everywhere.

    The first one orders call paths. It is time; without measured times, it is the number of basic blocks.
    """
    first = _FIRST if "time" in view.values else _FIRST_OF_COUNTS
    present = [name for name in first if name in view.values and bool(np.any(np.nan_to_num(view.values[name])))]
    return tuple(present) or tuple(sorted(view.values))[:4]


def largest_with_callers(view: TreeView, options: TreeOptions) -> NDArray[np.bool_]:
    """Return which call paths `options.top` selects, shape (call paths,).

    They are the call paths with the largest exclusive values of the sorting metric, and their callers.
    """
    tree = view.tree
    if options.top is None:
        return np.ones(len(tree), dtype=np.bool_)
    metric = options.sort or (options.metrics or default_metrics(view))[0]
    own = np.nan_to_num(statistics(view.scoped(metric, "exclusive"), view.over).value, nan=0.0)
    own = np.where(tree.start_and_end, 0.0, own)
    kept = np.zeros(len(tree), dtype=np.bool_)
    for node in np.argsort(-own, kind="stable")[: options.top].tolist():
        if own[node] > 0:
            kept[list(tree.ancestry(node))] = True
    return kept
