# SPDX-License-Identifier: Apache-2.0
"""How far the heap was from its largest at other call paths.

What call paths hold is known of one moment: when the heap of the rank was largest. In larger runs this may be another
moment, as where the matrix grows faster than the buffers that its construction needs. How large the heap was at a call
path that allocates is known of every run, though, and its distance from the largest has a simple law where the heap
itself is a sum of many.
"""

from __future__ import annotations

import numpy as np

from .experiment import PEAK, Experiment
from .pmnf.model import Model
from .pmnf.modeler import fit_counts
from .pmnf.options import Options

NEARLY = 0.9
"""Which part of the largest heap it must have been at a call path, in every run, for the call path to be looked at."""


def heap_moments(experiment: Experiment, options: Options) -> tuple[Model, ...]:
    """Return models of how much smaller the heap of the largest rank was at call paths than at its largest (bytes)."""
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
