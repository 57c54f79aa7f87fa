"""Call-path records of raw profiles as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray

_FIXED_SIZE = 64
_LARGEST_COUNT = (1 << 63) - 1


@dataclass(frozen=True, eq=False)
class NodeArrays:
    """Call-path nodes in the order of their ids, so that parents come before children.

    parent (index, -1: root), region (id), location: int64 of shape (nodes,); counts: int64 (nodes, metrics).
    """

    parent: IntArray
    region: IntArray
    location: IntArray
    counts: NDArray[np.int64]


def read_nodes(chunks: list[tuple[int, bytes]], node_size: int, metric_count: int, problems: list[str]) -> NodeArrays:
    """Return the nodes of all chunks; nodes whose place in the tree is unknown are left out with a problem."""
    layout = np.dtype(
        {
            "names": ["id", "parent", "region", "counts"],
            "formats": ["<u4", "<u4", "<u8", ("<u8", (metric_count,))],
            "offsets": [0, 4, 8, _FIXED_SIZE],
            "itemsize": node_size,
        }
    )
    pieces = []
    locations = []
    for location, content in chunks:
        piece = np.frombuffer(content, dtype=layout, count=len(content) // node_size)
        pieces.append(piece)
        locations.append(np.full(piece.size, location, dtype=np.int64))
    if not pieces:
        empty = np.zeros(0, dtype=np.int64)
        return NodeArrays(empty, empty, empty, np.zeros((0, metric_count), dtype=np.int64))
    ids = np.concatenate([piece["id"] for piece in pieces]).astype(np.int64)
    parents = np.concatenate([piece["parent"] for piece in pieces]).astype(np.int64)
    regions = np.concatenate([piece["region"] for piece in pieces])
    counts = np.concatenate([piece["counts"] for piece in pieces])
    place = np.concatenate(locations)
    order, parent = _order(ids, parents, problems)
    regions = np.minimum(regions, np.uint64(_LARGEST_COUNT)).astype(np.int64)
    return NodeArrays(parent, regions[order], place[order], _signed(counts[order], problems))


def _order(ids: IntArray, parents: IntArray, problems: list[str]) -> tuple[IntArray, IntArray]:
    """Return the usable records in the order of their ids, and the position of each one's parent in that order.

    The runtime numbers nodes as it makes them, so a parent's id is below its children's: anything else is damage,
    and cycles cannot pass. Records with id 0 were reserved and never filled.
    """
    order = np.argsort(ids, kind="stable")
    sorted_ids = ids[order]
    keep = sorted_ids > 0
    repeated = np.zeros(ids.size, dtype=bool)
    repeated[1:] = sorted_ids[1:] == sorted_ids[:-1]
    kept = order[keep & ~repeated & (parents[order] < sorted_ids)]
    kept_ids = ids[kept]
    root = parents[kept] == 0
    position = np.minimum(np.searchsorted(kept_ids, parents[kept]), max(kept.size - 1, 0))
    adrift = ~root & (kept_ids[position] != parents[kept]) if kept.size else np.zeros(0, dtype=bool)
    adrift = _spread(adrift, np.where(root | adrift, np.arange(kept.size), position))
    new_position = np.cumsum(~adrift) - 1
    lost = int(keep.sum()) - int((~adrift).sum())
    if lost:
        problems.append(f"{lost} call-path records have no known place in the tree and were left out")
    parent = np.where(root, -1, new_position[position]) if kept.size else np.zeros(0, dtype=np.int64)
    return kept[~adrift], parent[~adrift].astype(np.int64)


def _spread(adrift: NDArray[np.bool_], ancestor: IntArray) -> NDArray[np.bool_]:
    """Mark all nodes below marked nodes by pointer doubling: log(depth) passes, however deep a stranger's tree is."""
    while True:
        adrift = adrift | adrift[ancestor]
        further = ancestor[ancestor]
        if bool(np.array_equal(further, ancestor)):
            return adrift
        ancestor = further


def _signed(counts: NDArray[np.uint64], problems: list[str]) -> NDArray[np.int64]:
    if counts.size and int(counts.max()) > _LARGEST_COUNT:
        problems.append("some counters are beyond 2^63: they are damaged and count as the largest number")
        counts = np.minimum(counts, np.uint64(_LARGEST_COUNT))
    return counts.astype(np.int64)
