# SPDX-License-Identifier: Apache-2.0
"""Read files of rates, and find the call paths of a simulated run for which such a file has no rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from quipu.modeling.experiment import RegionKind
from quipu.modeling.rates import Rates, from_document

from ..archive.run import RunArchive
from ..archive.run_json import read_json

_MATTERS = 1e-3  # smallest share of the computation time that is worth a note


def read_rates(path: Path) -> Rates:
    """Return the rates in a file that `quipu rates` wrote. Raises FormatError with the path and the reason."""
    return from_document(read_json(path), path)


def without_rates(archive: RunArchive, rates: Rates) -> str:
    """Return a note on call paths without separate rates, which used the rates of their function or of the program.

    Returns "" if these call paths have little of the computation time (`_MATTERS`).
    """
    tree = archive.tree
    time = archive.statistics["time"].mean if "time" in archive.statistics else np.zeros(len(tree))
    computes = [path for path in range(len(tree)) if tree.region_of(path).kind is not RegionKind.MPI and time[path] > 0]
    seconds = {tree.key(path): float(time[path]) for path in computes}
    labels = {tree.key(path): tree.label(path) for path in computes}
    total = sum(seconds.values())
    parts = []
    for paths, whose in zip(rates.without(list(seconds)), ("their function", "the program"), strict=True):
        share = sum(seconds[path] for path in paths) / total if paths else 0.0
        if share >= _MATTERS:
            most = max(paths, key=seconds.__getitem__)
            parts.append(f"{len(paths)} ({share:.1%} of it, first {labels[most]}) use the rates of {whose}")
    return f"computation of call paths without separate rates: {'; '.join(parts)}" if parts else ""
