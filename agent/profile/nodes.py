# SPDX-License-Identifier: Apache-2.0
"""Call-path records of raw profiles as arrays, and which of them threads were in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray

from ..layout import LAYOUT
from .chunks import Chunk

_NODE = LAYOUT.record("profile_node")
FIXED_SIZE = np.dtype(_NODE).itemsize
_LARGEST_COUNT = (1 << 63) - 1
_THREAD = np.dtype(LAYOUT.record("profile_thread"))


@dataclass(frozen=True, eq=False)
class NodeArrays:
    """Call-path nodes in the order of their ids, so that parents come before children.

    id, parent (index, -1: root), region (id), location: int64 of shape (nodes,); address: uint64 (nodes,), where the
    record was in the memory of the process; counts: uint64 (nodes, metrics), numbers modulo 2^64; owner (index of the
    node whose visits and counters count here, -1: none): int64 (nodes,). untimed: bool (nodes,), whether the time is
    that of a caller because time stamps would have cost too much.
    """

    id: IntArray
    parent: IntArray
    region: IntArray
    location: IntArray
    address: NDArray[np.uint64]
    counts: NDArray[np.uint64]
    owner: IntArray
    untimed: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ActiveThreads:
    """Threads that were being measured when the file was last written to.

    location, node (index of the active node, -1: unknown): int64 of shape (threads,); last: uint64 (threads,), the
    clock at the latest event of the thread; time since then is not in any node.
    """

    location: IntArray
    node: IntArray
    last: NDArray[np.uint64]


NO_THREADS = ActiveThreads(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64))


def node_layout(node_size: int, metric_count: int) -> np.dtype[np.void]:
    """Return the type of a node's record."""
    beyond = node_size - FIXED_SIZE - 8 * metric_count
    return np.dtype([*_NODE, ("counts", "<u8", (metric_count,)), ("beyond", f"V{beyond}")])


def read_nodes(chunks: Sequence[Chunk], node_size: int, metric_count: int, problems: list[str]) -> NodeArrays:
    """Return the nodes of all chunks; nodes whose place in the tree is unknown are left out with a problem."""
    layout = node_layout(node_size, metric_count)
    pieces = [np.zeros(0, dtype=layout)]
    locations = [np.zeros(0, dtype=np.int64)]
    addresses = [np.zeros(0, dtype=np.uint64)]
    for chunk in chunks:
        piece = np.frombuffer(chunk.content, dtype=layout, count=len(chunk.content) // node_size)
        pieces.append(piece)
        locations.append(np.full(piece.size, chunk.location, dtype=np.int64))
        start = np.uint64(chunk.address & 0xFFFFFFFFFFFFFFFF)
        addresses.append(start + np.arange(piece.size, dtype=np.uint64) * np.uint64(node_size))
    ids = np.concatenate([piece["id"] for piece in pieces]).astype(np.int64)
    parents = np.concatenate([piece["parent"] for piece in pieces]).astype(np.int64)
    regions = np.concatenate([piece["region"] for piece in pieces])
    counts = np.concatenate([piece["counts"] for piece in pieces])
    charged = np.concatenate([piece["charged"] for piece in pieces])
    address = np.concatenate(addresses)
    owners = region_ids(np.concatenate([piece["owner"] for piece in pieces]))
    order, parent = _order(ids, parents, problems)
    return NodeArrays(
        ids[order],
        parent,
        region_ids(regions[order]),
        np.concatenate(locations)[order],
        address[order],
        counts[order],
        _positions(owners[order], ids[order]),
        ((charged != 0) & (charged != address))[order],
    )


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the different numbers, ascending: `numpy.unique` alone imports numpy.ma, a tenth of what a run costs."""
    return np.unique(numbers, return_index=True)[0]


def _positions(owners: IntArray, ids: IntArray) -> IntArray:
    """Return where the owners are among the ids, which ascend; -1 for 0 and for what is not there."""
    place = np.minimum(np.searchsorted(ids, owners), max(ids.size - 1, 0))
    return np.where((owners > 0) & (ids[place] == owners), place, -1) if ids.size else owners


def region_ids(numbers: NDArray[np.uint64]) -> IntArray:
    """Return region ids as int64; those beyond the range, which no region has, become the largest."""
    return np.minimum(numbers, np.uint64(_LARGEST_COUNT)).astype(np.int64)


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


def read_threads(chunks: Sequence[Chunk], nodes: NodeArrays) -> ActiveThreads:
    """Return the threads that have a location; the node is found by its address, which chunks and threads share."""
    pieces = [np.frombuffer(c.content, dtype=_THREAD, count=len(c.content) // _THREAD.itemsize) for c in chunks]
    records = np.concatenate([np.zeros(0, dtype=_THREAD), *pieces])
    records = records[records["in_use"] != 0]
    by_address = np.argsort(nodes.address, kind="stable")
    addresses = nodes.address[by_address]
    node = np.full(records.size, -1, dtype=np.int64)
    if addresses.size:
        place = np.minimum(np.searchsorted(addresses, records["here"]), addresses.size - 1)
        node = np.where(addresses[place] == records["here"], by_address[place], -1)
    return ActiveThreads(records["location"].astype(np.int64), node, records["last"].copy())


def without_nodes(parent: IntArray, vanish: NDArray[np.bool_]) -> IntArray:
    """Return `parent` where nodes that vanish are skipped: their children hang from the next node above, or are roots.

    Indices are still those of the full arrays. Parents precede children.
    """
    nowhere = parent.size
    stop = np.append(np.where(vanish, np.where(parent >= 0, parent, nowhere), np.arange(nowhere)), nowhere)
    while True:
        further = stop[stop]
        if bool(np.array_equal(further, stop)):
            break
        stop = further
    above = stop[parent]
    return np.where((parent < 0) | (above == nowhere), -1, above)
