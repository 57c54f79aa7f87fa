# SPDX-License-Identifier: Apache-2.0
"""Model the difference between the largest heap and the heap at a call path.

The metric `heap_held` describes the moment at which the heap of a rank was largest. In larger runs, the heap may be
largest at another moment, for example if a matrix grows faster than the buffers of its construction. The metric
`heap_peak` records the largest heap during the allocations of each call path. The largest heap of the rank minus
`heap_peak` of a call path has a simple formula, even if the heap is a sum of many parts.
"""

from __future__ import annotations

import numpy as np

from .experiment import PEAK, Experiment
from .pmnf.model import Model
from .pmnf.modeler import fit_counts
from .pmnf.options import Options

NEARLY = 0.9
"""A call path is examined if its heap was at least this part of the largest heap in every run."""


def heap_moments(experiment: Experiment, options: Options) -> tuple[Model, ...]:
    """Return models of the largest heap of a rank minus its heap at other call paths, in bytes.

    A negative prediction means that the heap is larger at the other call path. () without the metric `heap_peak`.
    """
    if PEAK not in experiment.values:
        return ()
    peaks = np.nan_to_num(experiment.values[PEAK])
    largest = peaks.max(axis=0)
    near = (peaks >= NEARLY * largest).all(axis=(1, 2)) & (peaks < largest).any(axis=(1, 2))
    if not near.any():
        return ()
    below = np.unique(largest - peaks[near], axis=0)
    flags = np.ones(below.shape[:2], dtype=bool)
    (found,) = fit_counts(experiment.points, [below], experiment.parameters, options, [flags])
    return tuple(model for model in found if isinstance(model, Model))
