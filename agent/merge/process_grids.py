# SPDX-License-Identifier: Apache-2.0
"""Find the process grid of an experiment: created by the program, declared, or inferred from messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from quipu.modeling.experiment import FloatArray
from quipu.modeling.process_grid import MOST_DIMENSIONS, ProcessGrid, assumed, infer

from ..archive.metadata import RunMetadata
from ..archive.run import CommunicationMatrix
from .topology import agreeing

Matrices = Callable[[], Mapping[int, CommunicationMatrix]]


def process_grids(
    names: Sequence[str],
    points: FloatArray,
    runs: Sequence[RunMetadata],
    configuration: Sequence[int],
    matrices: Matrices = dict,
) -> tuple[tuple[ProcessGrid, ...], list[str]]:
    """Return the process grids that counts may depend on, and notes on contradictions.

    - names: parameters. points: shape (configurations, parameters).
    - runs: metadata of each run. configuration: index of the configuration of each run.
    - matrices: function that returns number of ranks → communication matrix; only called if the program creates no
      grid.

    The result is empty if no parameter is the number of ranks, if the program creates a grid with one dimension or too
    many dimensions, or if its grids follow no known rule.
    """
    parameter = _number_of_ranks(names, points, runs, configuration)
    if parameter is None:
        return (), []
    made = sorted({(run.ranks, run.grid) for run in runs if run.grid})
    if not made:
        return _of_messages(assumed(parameter), matrices()), []
    if len({ranks for ranks, _ in made}) < len(made) or len({len(own) for _, own in made}) > 1:
        return assumed(parameter), ["the program creates different process grids for the same number of ranks"]
    extents = np.array([own for _, own in made], dtype=np.int64)
    if not 1 < extents.shape[1] <= MOST_DIMENSIONS:
        return (), []
    found = infer(parameter, [ranks for ranks, _ in made], extents, "of MPI_Cart_create")
    if found is not None:
        periodic = {run.periodic for run in runs if run.grid}
        same = len(periodic) == 1 and len(max(periodic)) == found.dimensions
        return (replace(found, periodic=max(periodic)) if same else found,), []
    texts = ", ".join("x".join(map(str, own)) for _, own in made)
    return (), [f"the process grids {texts} follow no known rule: their counts are modeled as functions of {parameter}"]


def _of_messages(
    grids: tuple[ProcessGrid, ...], matrices: Mapping[int, CommunicationMatrix]
) -> tuple[ProcessGrid, ...]:
    """Return the grids that agree with the communication matrices; all grids if the matrices exclude none."""
    found = agreeing(grids, matrices)
    return grids if found is None else tuple(replace(grid, source="of messages") for grid in found)


def _number_of_ranks(
    names: Sequence[str], points: FloatArray, runs: Sequence[RunMetadata], configuration: Sequence[int]
) -> str | None:
    """Return the name of the varied parameter that equals the number of ranks in every run; None if there is none."""
    ranks = np.array([run.ranks for run in runs])
    for place, name in enumerate(names):
        values = points[list(configuration), place]
        if np.unique(values).size > 1 and (values == ranks).all():
            return name
    return None
