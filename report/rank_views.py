# SPDX-License-Identifier: Apache-2.0
"""View of the times of the longest call paths by rank, or by blocks of ranks if there are many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from quipu.modeling.experiment import FloatArray
from quipu.modeling.refine.imbalance import imbalances

from .communication_views import MOST_BLOCKS
from .json_views import json_number

_MOST_PATHS = 24
_MOST_CELLS = 20_000  # largest number of cells of all configurations in a page


def rank_data(times: Mapping[tuple[float, ...], FloatArray], points: FloatArray) -> list[dict[str, Any]]:
    """Return the times by rank for the report. If all do not fit, the configurations with most ranks have priority.

    times: for each configuration the exclusive seconds of one run, shape (call paths, ranks); 0 for the start and the
    end of MPI. points: all configurations, shape (configurations, parameters).

    Keys of each entry: "configuration" (index into points); "ranks"; "step" (ranks per block); "paths" (indices, the
    longest first); "cells" (mean seconds over the ranks of each block, for each path); "imbalance" of each path:
    (max − mean) / max · n / (n − 1) over all n ranks.
    """
    places = {tuple(point): at for at, point in enumerate(points.tolist())}
    found = {places[point]: seconds for point, seconds in times.items() if point in places and seconds.shape[1] > 1}
    result: list[dict[str, Any]] = []
    left = _MOST_CELLS
    for at, seconds in sorted(found.items(), key=lambda own: (-own[1].shape[1], own[0])):
        ranks = seconds.shape[1]
        step = -(-ranks // MOST_BLOCKS)
        total = seconds.sum(axis=1)
        heaviest = np.argsort(-total, kind="stable")[:_MOST_PATHS]
        paths = heaviest[total[heaviest] > 0.0]
        starts = np.arange(0, ranks, step)
        left -= paths.size * starts.size
        if left < 0:
            break
        cells = np.add.reduceat(seconds[paths], starts, axis=1) / np.diff([*starts, ranks])
        result.append(
            {
                "configuration": at,
                "ranks": ranks,
                "step": step,
                "paths": paths.tolist(),
                "cells": [[json_number(float(f"{value:.6g}")) for value in row] for row in cells.tolist()],
                "imbalance": [json_number(round(one.percentage, 6)) for one in imbalances(seconds[paths])],
            }
        )
    return sorted(result, key=lambda own: own["configuration"])
