"""Unification of call trees: of the threads and ranks of a run, and of the runs of an experiment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from quipu.modeling.experiment import CallTree, IntArray, Region


class RegionTable:
    """Numbers regions by linker name: regions of the same linker name are one region."""

    def __init__(self) -> None:
        """Start with no regions."""
        self._regions: dict[str, Region] = {}
        self._numbers: dict[str, int] = {}

    def number(self, region: Region) -> int:
        """Return the number of a region, from 0 in order of first use. The richest description is kept."""
        number = self._numbers.setdefault(region.name, len(self._numbers))
        known = self._regions.get(region.name)
        if known is None or (not known.file and region.file):
            self._regions[region.name] = region
        return number

    def numbers(self, regions: Iterable[Region]) -> IntArray:
        """Return the numbers of several regions, int64."""
        return np.fromiter((self.number(region) for region in regions), dtype=np.int64)

    @property
    def regions(self) -> tuple[Region, ...]:
        """All regions in the order of their numbers."""
        return tuple(self._regions[name] for name in self._numbers)


@dataclass(frozen=True, eq=False)
class Forest:
    """Call paths of one source: `region` holds numbers of a RegionTable, `parent` indices (-1: root)."""

    parent: IntArray
    region: IntArray


def unify(forests: list[Forest], table: RegionTable) -> tuple[CallTree, list[IntArray]]:
    """Return the tree of all call paths of the forests, and for each forest the path of every node.

    Two nodes are the same call path if the region numbers from their roots are the same. Works level by level over
    all forests at once: O(N log N) array operations for N nodes together and one step per level of depth. Parents
    come before children, and siblings in the order in which the forests first name them.
    """
    sizes = [forest.parent.size for forest in forests]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    parent = _concatenate([np.where(f.parent >= 0, f.parent + o, -1) for f, o in zip(forests, offsets, strict=False)])
    region = _concatenate([forest.region for forest in forests])
    depth = depths(parent)
    by_depth = np.argsort(depth, kind="stable")
    ends = np.cumsum(np.bincount(depth)) if depth.size else np.zeros(0, dtype=np.int64)
    path = np.full(parent.size, -1, dtype=np.int64)
    tree_parent: list[IntArray] = []
    tree_region: list[IntArray] = []
    regions = len(table.regions)
    count = 0
    start = 0
    for end in ends.tolist():
        level = by_depth[start:end]
        above = np.where(parent[level] >= 0, path[parent[level]], -1)
        key = (above + 1) * regions + region[level]
        unique, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        rank_of = np.empty_like(order)
        rank_of[order] = np.arange(order.size)
        path[level] = count + rank_of[inverse]
        tree_parent.append(unique[order] // regions - 1)
        tree_region.append(unique[order] % regions)
        count += unique.size
        start = end
    tree = CallTree(table.regions, _concatenate(tree_region), _concatenate(tree_parent))
    return tree, [path[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def depths(parent: IntArray) -> IntArray:
    """Return the depth of every node (0: root) by pointer doubling: log(depth) passes. Parents precede children."""
    depth = (parent >= 0).astype(np.int64)
    ancestor = parent
    while bool(np.any(ancestor >= 0)):
        linked = ancestor >= 0
        depth = depth + np.where(linked, depth[ancestor], 0)
        ancestor = np.where(linked, ancestor[ancestor], -1)
    return depth


def _concatenate(pieces: list[IntArray]) -> IntArray:
    return np.concatenate(pieces).astype(np.int64) if pieces else np.zeros(0, dtype=np.int64)
