# SPDX-License-Identifier: Apache-2.0
"""Read the nodes of raw profiles as arrays, and the active node of each thread.

A node is a record of one call path of one thread.
"""

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
    """Nodes in the order of their ids, so that parents come before children. All arrays begin with the axis (nodes,).

    - id: as in the file. parent: index of the parent; -1: a root. region: id of the region. location: number of the
      thread.
    - address: address of the record in the memory of the process.
    - counts: shape (nodes, metrics), modulo 2^64, exclusive; times in clock ticks.
    - owner: the node of an inlined function has no visits and counters. Its effort follows from the visits and counters
      of its owner, the node of the function that contains its code. Index of the owner; -1: not inlined.
    - untimed: whether the time of the node is contained in the time of a caller, because reading the clock for this
      node was too expensive.
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
    """The measured threads at the last write to the file. All arrays have the shape (threads,).

    location: number of the thread. node: index of the active node; -1: unknown. last: the clock at the latest event of
    the thread (ticks); no node contains the time after this event.
    """

    location: IntArray
    node: IntArray
    last: NDArray[np.uint64]


NO_THREADS = ActiveThreads(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64))


def node_layout(node_size: int, metric_count: int) -> np.dtype[np.void]:
    """Return the NumPy type of the record of a node. node_size: its bytes. metric_count: its number of metrics."""
    beyond = node_size - FIXED_SIZE - 8 * metric_count
    return np.dtype([*_NODE, ("counts", "<u8", (metric_count,)), ("beyond", f"V{beyond}")])


def read_nodes(chunks: Sequence[Chunk], node_size: int, metric_count: int, problems: list[str]) -> NodeArrays:
    """Return the nodes of all chunks. A node with an unknown parent is left out and reported in `problems`.

    node_size: bytes of a record. metric_count: number of metrics in a record.
    """
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
    """Return the distinct numbers in ascending order.

    `return_index` keeps `numpy.unique` from importing numpy.ma, which would take a tenth of the time of a run.
    """
    return np.unique(numbers, return_index=True)[0]


def _positions(owners: IntArray, ids: IntArray) -> IntArray:
    """Return the index of each owner in the ascending `ids`; -1 for owner 0 (none) and for ids that do not exist."""
    place = np.minimum(np.searchsorted(ids, owners), max(ids.size - 1, 0))
    return np.where((owners > 0) & (ids[place] == owners), place, -1) if ids.size else owners


def region_ids(numbers: NDArray[np.uint64]) -> IntArray:
    """Return ids as int64. Ids above the largest int64 are invalid and become the largest int64."""
    return np.minimum(numbers, np.uint64(_LARGEST_COUNT)).astype(np.int64)


def _order(ids: IntArray, parents: IntArray, problems: list[str]) -> tuple[IntArray, IntArray]:
    """Return the indices of the valid records in the order of their ids, and the parent of each one.

    A parent is a position in this order; -1: a root. The runtime numbers nodes in the order of their creation. A record
    whose parent has a larger id is therefore damaged. Without such records the result has no cycles. Records with id 0
    were reserved and never filled.
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
    """Return `adrift` with marks for all nodes below a marked node.

    ancestor: for each node, the index of its parent; of itself for roots and marked nodes. Pointer doubling needs only
    log2(depth) passes, also for the deep tree of a damaged file.
    """
    while True:
        adrift = adrift | adrift[ancestor]
        further = ancestor[ancestor]
        if bool(np.array_equal(further, ancestor)):
            return adrift
        ancestor = further


def read_threads(chunks: Sequence[Chunk], nodes: NodeArrays) -> ActiveThreads:
    """Return the threads that had a location at the last write.

    The file contains the address of the active node of each thread in the memory of the process.
    """
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
    """Return the parents after removing nodes: children of removed nodes get the next remaining node above.

    parent: index of the parent of each node, -1: a root; parents precede children. vanish: the nodes to remove. The
    result has the same shape and numbering as `parent`: removed nodes keep their indices. A node without a remaining
    node above becomes a root.
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
