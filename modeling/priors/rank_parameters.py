# SPDX-License-Identifier: Apache-2.0
"""Find the parameters of an experiment that are the number of ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..experiment import Experiment
from ..parameter_names import RANK_NAMES


def rank_parameters(experiment: Experiment) -> set[str]:
    """Return the parameters that are the number of ranks, by name (`called_ranks`) or by the size of a communicator.

    Uses the largest communicator of every configuration, which contains all ranks.
    """
    lowest, highest = experiment.points.min(axis=0, initial=np.inf), experiment.points.max(axis=0, initial=-np.inf)
    names = called_ranks(experiment.parameters, list(zip(lowest.tolist(), highest.tolist(), strict=True)))
    sizes = experiment.values.get("comm_size")
    if sizes is not None and sizes.size:
        largest = np.nan_to_num(sizes).max(axis=(0, 2))
        for column, name in enumerate(experiment.parameters):
            if np.array_equal(largest, experiment.points[:, column]):
                names.add(name)
    return names


def called_ranks(parameters: Sequence[str], ranges: Sequence[tuple[float, float]]) -> set[str]:
    """Return the parameters with a name for the number of ranks, and with whole numbers as range."""
    return {
        name
        for name, ends in zip(parameters, ranges, strict=True)
        if name in RANK_NAMES and all(float(end).is_integer() and end >= 1 for end in ends)
    }
