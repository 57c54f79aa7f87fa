# SPDX-License-Identifier: Apache-2.0
"""Attribute the cost of a chain of functions to a call path.

A chain contains the function with the cost, its caller, and so on. The cost of a function that is not a region (for
example of a system library) belongs to the region that called it, like its time. Functions inside of an MPI operation
(MPI_Send or PMPI_Send) belong to the operation. A chain that was truncated belongs to the call path with the same end,
if there is only one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import CallTree, RegionKind


class CallPaths:
    """Finds call paths of a tree by chains of functions."""

    def __init__(self, tree: CallTree) -> None:
        self._tree = tree
        self._regions = {region.name for region in tree.regions}
        self._mpi = {region.name for region in tree.regions if region.kind is RegionKind.MPI}
        self._endings: dict[str, list[int]] = {}
        for path in range(len(tree)):
            self._endings.setdefault(tree.region_of(path).name, []).append(path)
        self._known: dict[tuple[str, ...], int] = {}

    def find(self, chain: Sequence[str]) -> int:
        """Return the call path of a chain of functions, innermost first; -1 if the chain contains no region."""
        regions = self._regions_of(chain)
        if not regions:
            return -1
        if regions not in self._known:
            self._known[regions] = self._search(regions)
        return self._known[regions]

    def _regions_of(self, chain: Sequence[str]) -> tuple[str, ...]:
        found: list[str] = []
        for function in chain:
            name = self._region(function)
            if name in self._mpi:
                found = [name]  # deeper functions are part of the operation
            elif name:
                found.append(name)
        return tuple(found)

    def _region(self, function: str) -> str:
        if function in self._regions:
            return function
        plain = function.removeprefix("P") if function.startswith("PMPI_") else function
        return plain if plain in self._regions else ""

    def _search(self, regions: tuple[str, ...]) -> int:
        """Return the call path that agrees with the longest part of the chain; inlined regions are not in the chain."""
        best, best_score = -1, (-1, 0)
        for path in self._endings[regions[0]]:
            score = (self._agreement(path, regions), -int(self._tree.depth[path]))
            if score > best_score:
                best, best_score = path, score
        return best

    def _agreement(self, path: int, regions: tuple[str, ...]) -> int:
        place, node = 0, path
        while node >= 0 and place < len(regions):
            if self._tree.region_of(node).name == regions[place]:
                place += 1
            node = int(self._tree.parent[node])
        return place


def attributed(
    tree: CallTree, costs: Iterable[tuple[Sequence[str], Sequence[int]]], events: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the costs of call paths, shape (call paths, events), and the remaining costs, shape (events,)."""
    paths = CallPaths(tree)
    result = np.zeros((len(tree), events), dtype=np.int64)
    outside = np.zeros(events, dtype=np.int64)
    for chain, values in costs:
        path = paths.find(chain)
        if path >= 0:
            result[path] += np.array(values, dtype=np.int64)
        else:
            outside += np.array(values, dtype=np.int64)
    return result, outside


def inlined(tree: CallTree, seen: Set[str]) -> list[str]:
    """Return the functions of a tree that do not exist in the program, because the compiler inlined them."""
    functions = {tree.region_of(path) for path in range(len(tree))}
    return sorted(one.display for one in functions if one.kind is RegionKind.FUNCTION and one.name not in seen)


def levels_of(costs: NDArray[np.int64], events: Sequence[str]) -> Mapping[str, NDArray[np.int64]]:
    """Return counters by metric from columns (…, events) of callgrind: Ir, Dr, Dw, D1mr, D1mw, DLmr, DLmw.

    Valgrind simulates two levels: an access that misses the first level and does not miss the last one is a hit of the
    last level.
    """
    column = {name: costs[..., place] for place, name in enumerate(events)}
    nothing = np.zeros_like(costs[..., 0])
    accesses = column.get("Dr", nothing) + column.get("Dw", nothing)
    first = column.get("D1mr", nothing) + column.get("D1mw", nothing)
    last = column.get("DLmr", nothing) + column.get("DLmw", nothing)
    return {
        "cpu_instructions": column.get("Ir", nothing),
        "l1_hits": accesses - first,
        "llc_hits": first - last,
        "memory_accesses": last,
    }
