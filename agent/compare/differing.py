# SPDX-License-Identifier: Apache-2.0
"""Compute the differences between two sides: of effort, with source lines and growth, and of times."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.differences import EffortDifference, effort_differences, time_differences
from quipu.modeling.errors import UsageError
from quipu.modeling.expectations import LEAST_VALUES
from quipu.modeling.pmnf.model import Model
from quipu.modeling.printable import counted
from quipu.report.difference_views import DifferenceView, EffortRow, LineRow
from quipu.report.text import waiting_texts

from ..archive.fingerprint import differences
from .causes import PairLines
from .sides import Pair, Side, paired


def difference_view(before: Side, after: Side, metrics: Sequence[str] = (), inclusive: bool = False) -> DifferenceView:
    """Return the differences between two sides.

    metrics: the metrics to compare; empty: all effort metrics of both sides, and the time. inclusive: compare inclusive
    values, not exclusive ones. Raises UsageError for a metric that one side does not have, and the errors of `paired`.
    """
    pair = paired(before, after)
    old, new = pair.before, pair.after
    common = [name for name in new.values if name in old.values]
    if unknown := [name for name in metrics if name not in common]:
        raise UsageError(
            f"--metric: {', '.join(unknown)} was not measured on both sides; both have: {', '.join(common)}"
        )
    chosen = list(metrics) or common
    effort = [name for name in chosen if new.metrics[name].is_effort]
    costs = [name for name in chosen if name == "time" or (name in metrics and not new.metrics[name].is_effort)]
    found = effort_differences(old, new, effort, inclusive)
    rows = _rows(pair, found, inclusive)
    times = tuple(one for name in costs for one in time_differences(old, new, name, inclusive))
    facts = (
        ("before", _titled(before)),
        ("after", _titled(after)),
        ("compared", f"{counted(new.configurations, 'configuration', 'configurations')}, {len(new.tree)} call paths"),
        ("values", f"{'inclusive' if inclusive else 'exclusive'}, {new.over_ranks} over ranks"),
    )
    missing = [name for name in (*old.values, *new.values) if name not in common]
    notes = [f"measured on one side only: {', '.join(sorted(set(missing)))}"] if missing and not metrics else []
    if times:
        notes += [f"{text}; times contain waiting for a processor" for text in waiting_texts([new, old])]
    return DifferenceView(
        before.title,
        after.title,
        new.tree,
        {name: new.metrics[name] for name in common},
        new.configurations,
        tuple(effort),
        rows,
        times,
        facts,
        (*pair.notes, *_builds(before, after), *notes),
        (before.experiment.quality, after.experiment.quality),
    )


def _titled(side: Side) -> str:
    """Return the title of a side, with the disturbances of its measurement if there are any."""
    return f"{side.title} ({side.experiment.quality})" if side.experiment.quality else side.title


def _builds(before: Side, after: Side) -> list[str]:
    """Return, as a list, a note on the differences between the fingerprints of both sides; empty if unknown."""
    if None in (before.fingerprint, after.fingerprint):
        return []
    found = differences(before.fingerprint, after.fingerprint)
    if not found:
        return ["both were measured under the same conditions: program, command, measuring options and machine"]
    return [f"measured under different conditions: {'; '.join(found)}"]


def _rows(pair: Pair, found: Sequence[EffortDifference], inclusive: bool) -> tuple[EffortRow, ...]:
    lines: dict[int, PairLines] = {}
    growth = _growth(pair, sorted({one.metric for one in found})) if found and not inclusive else {}
    rows = []
    for one in found:
        point = dict(zip(pair.after.parameters, pair.after.points[one.at].tolist(), strict=True))
        changed = []
        if not inclusive:
            if one.at not in lines:
                lines[one.at] = PairLines(pair, one.at)
            for function, change, low, high in lines[one.at].changes(pair.after.tree.key(one.path), one.metric):
                place = (function.display, function.file, change.line, change.old_line)
                changed.append(LineRow(*place, one.metric, low, high))
        texts = growth.get((one.path, one.metric), ("", ""))
        rows.append(
            EffortRow(one, point, _weight(pair, one), *(texts if texts[0] != texts[1] else ("", "")), tuple(changed))
        )
    return tuple(rows)


def _weight(pair: Pair, one: EffortDifference) -> float:
    """Return a change relative to the whole program at the same configuration, before or after, the larger ratio.

    Returns inf if the program has the value 0 on both sides.
    """
    totals = []
    for side in (pair.before, pair.after):
        values = side.values[one.metric][:, one.at]
        totals.append(float(np.nanmax(side.tree.program_total(values)[~np.isnan(values).all(axis=0)], initial=0.0)))
    change = abs(one.after - one.before)
    return max((change / total for total in totals if total > 0), default=math.inf)


def _growth(pair: Pair, metrics: Sequence[str]) -> dict[tuple[int, str], tuple[str, str]]:
    """Return the texts of the models before and after, by call path and metric; "" where there is no model.

    Returns an empty dict if no parameter has enough values for a model.
    """
    points = pair.after.points
    if max((np.unique(column).size for column in points.T), default=0) < LEAST_VALUES:
        return {}
    sides = [fit_metrics(side, metrics) for side in (pair.before, pair.after)]
    return {
        (path, name): (_text(old), _text(new))
        for name in metrics
        for path, (old, new) in enumerate(zip(sides[0][name], sides[1][name], strict=True))
    }


def _text(model: object) -> str:
    return str(model) if isinstance(model, Model) else ""
