# SPDX-License-Identifier: Apache-2.0
"""Times of the longest call paths by rank, or by blocks of ranks if there are many."""

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
    """Return times by rank for the page; if there are too many configurations, only the ones with most ranks.

    times: by point, the exclusive seconds of one run, shape (call paths, ranks), 0 outside of the program. points:
    shape (configurations, parameters); the page refers to their indices.

    Keys of each configuration: "ranks"; "step" (ranks per block); "paths" (the longest first); "cells" (mean seconds of
    the ranks of a block, for each path); "imbalance" of each path: (max − mean) / max · n / (n − 1) over all ranks.
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
