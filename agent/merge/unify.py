# SPDX-License-Identifier: Apache-2.0
"""Unify call trees, of the threads and ranks of a run, or of the runs of an experiment, to one tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from quipu.modeling.experiment import CallTree, IntArray, Region

from ..archive.tables import concatenated
from .native import unify_nodes


class RegionTable:
    """Assigns numbers to regions. Regions with the same linker name are one region."""

    def __init__(self) -> None:
        """Start without regions."""
        self._regions: dict[str, Region] = {}
        self._numbers: dict[str, int] = {}

    def number(self, region: Region) -> int:
        """Return the number of a region, from 0 in the order of first use.

        If a region is described several times, the first description with a file is kept, otherwise the first.
        """
        number = self._numbers.setdefault(region.name, len(self._numbers))
        known = self._regions.get(region.name)
        if known is None or (not known.file and region.file):
            self._regions[region.name] = region
        return number

    def numbers(self, regions: Iterable[Region]) -> IntArray:
        """Return the numbers of several regions, int64 of shape (regions,)."""
        return np.fromiter((self.number(region) for region in regions), dtype=np.int64)

    @property
    def regions(self) -> tuple[Region, ...]:
        """Return all regions in the order of their numbers."""
        return tuple(self._regions[name] for name in self._numbers)


@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of one call tree. parent: index of the parent, -1 for a root. region: number in a `RegionTable`."""

    parent: IntArray
    region: IntArray


def unify_trees(trees: Sequence[CallTree]) -> tuple[CallTree, list[IntArray]]:
    """Return the tree of all call paths of several trees, and for each tree the index of its call paths in the result.

    Regions with equal linker names are the same region.
    """
    table = RegionTable()
    return unify([Forest(tree.parent, table.numbers(tree.regions)[tree.region]) for tree in trees], table)


def unify(forests: list[Forest], table: RegionTable) -> tuple[CallTree, list[IntArray]]:
    """Return the tree of all call paths of the forests, and for each forest the call path of every node, (nodes,).

    table: contains the regions of all forests. Two nodes are the same call path if the region numbers from their roots
    are equal. Call paths are ordered level by level; siblings are in the order of their first node.
    """
    offsets = np.cumsum([0, *(forest.parent.size for forest in forests)])
    pieces = [np.where(f.parent >= 0, f.parent + o, -1) for f, o in zip(forests, offsets, strict=False)]
    parent, region = concatenated(pieces, np.int64), concatenated((forest.region for forest in forests), np.int64)
    path, tree_parent, tree_region = unify_nodes(parent, region)
    return CallTree(table.regions, tree_region, tree_parent), [path[begin:end] for begin, end in pairwise(offsets)]


def places_in(tree: CallTree, own: CallTree) -> IntArray:
    """Return the index in `tree` of each call path of `own`; -1 for call paths that `tree` does not contain."""
    whole, (there, here) = unify_trees([tree, own])
    place = np.full(len(whole), -1, dtype=np.int64)
    place[there] = np.arange(len(tree))
    return place[here]
