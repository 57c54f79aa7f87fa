# SPDX-License-Identifier: Apache-2.0
"""Report times and counts below 0, which only files of other tools contain."""

from __future__ import annotations

import numpy as np

from .catalogue import NEGATIVE_VALUES
from .experiment import Experiment
from .printable import counted


def negative_notes(experiment: Experiment) -> tuple[str, ...]:
    """Return a note for each metric of time or effort with values below 0: their number, and the first one."""
    notes = []
    for name, metric in experiment.metrics.items():
        if name not in experiment.values or not (metric.unit == "s" or metric.is_effort):
            continue
        places = np.argwhere(experiment.values[name] < 0)
        if not len(places):
            continue
        path, configuration, _ = places[0].tolist()
        point = zip(experiment.parameters, experiment.points[configuration].tolist(), strict=True)
        where = ", ".join(f"{parameter}={value:g}" for parameter, value in point)
        number = counted(len(places), "value is", "values are")
        of = experiment.tree.label(path)
        notes.append(NEGATIVE_VALUES(metric=name, values=number, path=of, point=where))
    return tuple(notes)
