# SPDX-License-Identifier: Apache-2.0
"""Find the process grids that agree with the communication matrix.

Programs that arrange their ranks without `MPI_Cart_create` use a chain, a grid of two or three dimensions, or no grid.
The pairs of ranks that exchange messages distinguish them: a chain of four ranks has other pairs than a 2 x 2 grid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.process_grid import ProcessGrid

from ..archive.run import CommunicationMatrix

_Pairs = NDArray[np.int64]

# A pair of ranks is ignored if it has less than this share of the messages of the pair with the most messages: it only
# exchanges input, results or debugging output.
_LEAST_MESSAGES = 0.05
# The exchange is all-to-all if the smallest number of messages and of bytes of a pair is at least this share of the
# largest. In a grid, the sizes of messages for faces and corners of blocks differ more, by the cells along an edge.
_SAME = 0.5
# With fewer ranks, chains and grids have the same pairs.
_LEAST_RANKS = 4


def agreeing(
    grids: Sequence[ProcessGrid], matrices: Mapping[int, CommunicationMatrix]
) -> tuple[ProcessGrid, ...] | None:
    """Return the grids that agree with the communication matrices; None if no conclusion is possible.

    matrices: by number of ranks. No conclusion is possible without exchanged messages, or if no grid agrees. For an
    all-to-all exchange the result contains only chains (grids of one dimension), because counts then depend only on the
    number of ranks.
    """
    pairs = {ranks: _pairs(matrix) for ranks, matrix in matrices.items() if ranks >= _LEAST_RANKS}
    pairs = {ranks: own for ranks, own in pairs.items() if len(own)}
    if not pairs:
        return None
    if all(_everyone(matrices[ranks], ranks) for ranks in pairs):
        return tuple(grid for grid in grids if grid.dimensions == 1)
    found = tuple(grid for grid in grids if all(_agrees(grid, ranks, own) for ranks, own in pairs.items()))
    return found or None


def _known(matrix: CommunicationMatrix) -> NDArray[np.bool_]:
    """Return which rows of the matrix are messages between two different known ranks, shape (pairs,)."""
    return np.asarray((matrix.sender >= 0) & (matrix.receiver >= 0) & (matrix.sender != matrix.receiver), dtype=bool)


def _pairs(matrix: CommunicationMatrix) -> _Pairs:
    """Return the pairs of ranks that exchange many messages, shape (pairs, 2), the smaller rank first, each once."""
    known = _known(matrix)
    sender, receiver, messages = matrix.sender[known], matrix.receiver[known], matrix.messages[known]
    many = messages >= _LEAST_MESSAGES * messages.max(initial=0)
    both = np.sort(np.stack([sender[many], receiver[many]], axis=1).astype(np.int64), axis=1)
    return np.unique(both, axis=0)


def _everyone(matrix: CommunicationMatrix, ranks: int) -> bool:
    known = _known(matrix)
    if int(known.sum()) != ranks * (ranks - 1):
        return False
    sizes = (matrix.messages[known], matrix.bytes[known])
    return all(int(size.min()) >= _SAME * int(size.max()) for size in sizes)


def _agrees(grid: ProcessGrid, ranks: int, pairs: _Pairs) -> bool:
    """Return whether the pairs of ranks that exchange messages agree with a grid.

    All pairs must be neighbours in the grid, also across corners and periodic ends, and all ranks with a common face
    must be pairs.
    """
    extents = tuple(int(extent) for extent in grid.at(ranks))
    if int(np.prod(extents)) != ranks:
        return False
    return any(_are_neighbours(extents, order, pairs) for order in ("C", "F"))


def _are_neighbours(extents: tuple[int, ...], order: str, pairs: _Pairs) -> bool:
    """Return the result of `_agrees` for ranks that are numbered by rows ("C") or by columns ("F")."""
    places = np.stack(np.unravel_index(np.arange(int(np.prod(extents))), extents, order=order), axis=1)  # type: ignore[call-overload]
    if pairs.max() >= len(places):
        return False
    apart = np.abs(places[pairs[:, 0]] - places[pairs[:, 1]])
    around = np.minimum(apart, np.array(extents) - apart)
    if (around.max(axis=1) > 1).any() or (len(extents) == 1 and (around.sum(axis=1) != 1).any()):
        return False
    faces = int((apart.sum(axis=1) == 1).sum())
    ranks = int(np.prod(extents))
    return faces == sum(ranks // extent * (extent - 1) for extent in extents)
