# SPDX-License-Identifier: Apache-2.0
"""Make count classes from the effort of source lines, and compare them with the metrics of call paths."""

from __future__ import annotations

import numpy as np
from quipu.agent.archive.class_tables import read_classes, source_metrics
from quipu.agent.archive.run import ClassCounts, CountClass, RunArchive, SourceEffort
from quipu.modeling.metrics import WEIGHTED


def classes_of(effort: SourceEffort) -> ClassCounts:
    """Return classes whose `source()` is this effort."""
    rows = np.arange(effort.line.size)
    once = np.ones(rows.size, dtype=np.int64)
    classes = tuple(CountClass(-1, 0) for _ in rows)
    return ClassCounts(
        effort.callpath, rows, once, once, once, classes, rows, effort.line, effort.lines, dict(effort.metrics)
    )


def assert_classes_equal_metrics(archive: RunArchive) -> None:
    """Check that each effort metric of each call path is the sum of executions × weight of its classes, bit for bit.

    archive: a run as `read_archive` returns it, with the values of each rank.
    """
    counts = read_classes(archive.path, archive.metadata, archive.tree)
    assert counts is not None
    assert archive.values is not None
    names = source_metrics(archive.metadata.metrics)
    assert len(names) == WEIGHTED
    for name in names:
        of_class = [0] * len(counts.classes)  # whole numbers of Python: nothing is rounded, nothing overflows
        for number, weight in zip(counts.place_class.tolist(), counts.effort[name].tolist(), strict=True):
            of_class[number] += weight
        of_path, counted = [0] * len(archive.tree), [0] * len(archive.tree)
        for path, number, total in zip(
            counts.callpath.tolist(), counts.number.tolist(), counts.total.tolist(), strict=True
        ):
            of_path[path] += total * of_class[number]
        for path, value in zip(archive.values.callpath.tolist(), archive.values.metrics[name].tolist(), strict=True):
            counted[path] += value
        assert of_path == counted, (archive.path, name)
    assert (counts.lowest <= counts.highest).all()
    assert (counts.highest <= counts.total).all()
