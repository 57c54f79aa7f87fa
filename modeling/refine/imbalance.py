"""How unevenly ranks share the time of a region: the three metrics of PIRA's selection by load imbalance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ModelingError
from ..experiment import CallTree, FloatArray


@dataclass(frozen=True)
class Imbalance:
    """Metrics of one call path over n ranks with the times t; all are 0 if ranks are equal.

    percentage: (max − mean) / max · n / (n − 1), 1 if one rank does all. seconds: max − mean, what perfect balance
    would save. variation: standard deviation / mean.
    """

    path: int
    percentage: float
    seconds: float
    variation: float


def imbalances(times: FloatArray) -> list[Imbalance]:
    """Return the metrics of all call paths. times: inclusive seconds, shape (paths, ranks).

    Raises ModelingError for less than two ranks.
    """
    if times.ndim != 2 or times.shape[1] < 2:
        raise ModelingError("imbalance needs the times of at least two ranks")
    ranks = times.shape[1]
    found = []
    for path, row in enumerate(np.nan_to_num(times)):
        largest, mean = float(row.max()), float(row.mean())
        percentage = (largest - mean) / largest * ranks / (ranks - 1) if largest > 0 else 0.0
        found.append(Imbalance(path, percentage, largest - mean, float(row.std()) / mean if mean > 0 else 0.0))
    return found


def imbalanced(
    tree: CallTree, times: FloatArray, least: float = 0.05, share: float = 0.01
) -> tuple[tuple[Imbalance, ...], tuple[int, ...]]:
    """Return the call paths that ranks share unevenly, the most expensive first, and where to look below them.

    times: exclusive seconds, shape (paths, ranks). A call path counts with a percentage of at least `least`, if
    perfect balance would save at least `share` of the program. Second: the callees that take most of the
    imbalance further down, as numbers of call paths (drill-down).
    """
    inclusive = tree.inclusive(times)
    total = float(tree.program_total(times).mean())
    found = imbalances(inclusive)
    chosen = {
        entry.path
        for entry in found
        if entry.percentage >= least and total > 0 and entry.seconds >= share * total
        if not tree.start_and_end[entry.path]
    }
    below = []
    for path in sorted(chosen):
        inner = [child for child in tree.children[path] if not tree.start_and_end[child]]
        # The slowest rank of the caller is where its callees make the difference.
        slowest = int(np.argmax(inclusive[path]))
        gaps = {child: float(inclusive[child, slowest] - inclusive[child].mean()) for child in inner}
        worst = max(gaps, key=lambda child: gaps[child], default=None)
        if worst is not None and gaps[worst] > 0 and not math.isclose(gaps[worst], 0.0):
            below.append(worst)
    ordered = tuple(sorted((found[path] for path in chosen), key=lambda entry: (-entry.seconds, entry.path)))
    return ordered, tuple(dict.fromkeys(below))
