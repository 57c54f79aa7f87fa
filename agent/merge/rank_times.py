# SPDX-License-Identifier: Apache-2.0
"""Read the time of each rank in each call path of an experiment, from one run per configuration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from quipu.modeling.experiment import Experiment, FloatArray

from ..archive.read import read_archive
from .experiment import StoredRun
from .unify import places_in


def times_by_rank(runs: Sequence[StoredRun], experiment: Experiment) -> dict[tuple[float, ...], FloatArray]:
    """Return exclusive seconds by point, summed over threads, shape (call paths of the experiment, ranks).

    The values come from the first complete run of each point that contains the times of single ranks and has more than
    one rank. The call paths of the start and the end of MPI (MPI_Init, MPI_Finalize) have the value 0.
    """
    found: dict[tuple[float, ...], FloatArray] = {}
    for run in runs:
        metadata = run.metadata
        point = tuple(float(metadata.parameters.get(name, 0.0)) for name in experiment.parameters)
        if point in found or not (metadata.complete and metadata.rank_columns and metadata.ranks > 1):
            continue
        archive = read_archive(run.path)
        if archive.values is None or "time" not in archive.values.metrics:
            continue
        path = places_in(experiment.tree, archive.tree)[archive.values.callpath]
        kept = (path >= 0) & ~experiment.tree.start_and_end[path]
        seconds = np.zeros((len(experiment.tree), metadata.ranks))
        np.add.at(seconds, (path[kept], archive.values.rank[kept]), np.nan_to_num(archive.values.metrics["time"][kept]))
        found[point] = seconds
    return found
