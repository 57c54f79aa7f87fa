# SPDX-License-Identifier: Apache-2.0
"""Texts about formulas that fit all measured counts but differ at a point, and about the run that decides.

The deciding run is a count-only run at a configuration for which the formulas differ, so that it shows which one holds.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quipu.modeling.counts.deciding import Deciding
from quipu.modeling.counts.predictions import CountModels

from .catalogue import DECIDING_RUN, UNDECIDED_FORMULAS
from .short_label import short_label
from .text import percent, quantity

COUNTS = ("instructions", "blocks", "visits", "bytes_sent", "messages_sent")
"""Counts on which predictions of time depend."""


def deciding_notes(counts: CountModels | None, point: Mapping[str, float], metrics: Iterable[str]) -> list[str]:
    """Return a note about formulas that differ at a point, with the deciding run; empty if all formulas agree.

    The note is about one of `metrics`: the metric with the largest difference, if possible one with a deciding run.
    """
    found = furthest(counts, point, metrics)
    if counts is None or found is None:
        return []
    metric, decides = found
    experiment = counts.experiment
    first, second = (f"{quantity(value, experiment.metrics[metric].unit)} by {law}" for value, law in decides.laws)
    name = short_label(experiment.tree, decides.path)
    apart = f"several formulas fit all runs: here {metric} of {name} is {first}, or {second}"
    if decides.point is None:
        return [UNDECIDED_FORMULAS(apart=apart)]
    run = deciding_run(counts, decides.point)
    return [DECIDING_RUN(apart=apart, work=percent(decides.work), run=run)]


def furthest(
    counts: CountModels | None, point: Mapping[str, float], metrics: Iterable[str]
) -> tuple[str, Deciding] | None:
    """Return the metric whose formulas differ most at a point, and its deciding run; None if all formulas agree.

    Metrics with a deciding run have priority.
    """
    if counts is None:
        return None
    found = ((metric, counts.deciding(point, metric)) for metric in metrics if metric in counts.metrics)
    known = [(metric, decides) for metric, decides in found if decides is not None]
    return max(known, key=lambda entry: (entry[1].point is not None, entry[1].apart), default=None)


def deciding_run(counts: CountModels, point: Sequence[float]) -> str:
    """Return the command that makes a count-only run at a point. PROGRAM in it stands for the program of the user."""
    names = list(counts.experiment.parameters)
    given = " ".join(f"--param {name}={value:.15g}" for name, value in zip(names, point, strict=True))
    launch = "" if counts.ranks is None else f"mpirun -n {point[names.index(counts.ranks)]:.15g} "
    return f"quipu run --counts {given} -o {shlex.quote(counts.experiment.name)} -- {launch}PROGRAM"


def counting_json(counts: CountModels | None, point: Mapping[str, float]) -> dict[str, Any] | None:
    """Return the deciding run for the formulas of `COUNTS` at a point; None if all formulas agree, or no run decides.

    Keys: "metric" and "path" of the formulas, "point" of the run, "work" (work of the run divided by the work at the
    point), "command".
    """
    found = furthest(counts, point, COUNTS)
    if counts is None or found is None or found[1].point is None:
        return None
    metric, decides = found
    return {
        "metric": metric,
        "path": [counts.experiment.tree.name(step) for step in counts.experiment.tree.ancestry(decides.path)],
        "point": dict(zip(counts.experiment.parameters, found[1].point, strict=True)),
        "work": decides.work,
        "command": deciding_run(counts, found[1].point),
    }
