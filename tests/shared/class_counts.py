# SPDX-License-Identifier: Apache-2.0
"""Count classes made of the effort of source lines: one class for each line of a call path, executed once."""

from __future__ import annotations

import numpy as np
from quipu.agent.archive.run import ClassCounts, CountClass, SourceEffort


def classes_of(effort: SourceEffort) -> ClassCounts:
    """Return classes whose `source()` is this effort."""
    rows = np.arange(effort.line.size)
    once = np.ones(rows.size, dtype=np.int64)
    classes = tuple(CountClass(-1, 0) for _ in rows)
    return ClassCounts(
        effort.callpath, rows, once, once, once, classes, rows, effort.line, effort.lines, dict(effort.metrics)
    )
