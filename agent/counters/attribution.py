# SPDX-License-Identifier: Apache-2.0
"""Attribute the counts of chains of functions to the call paths of a run.

Callgrind counts per chain: a function, its caller, the caller of its caller, and so on. A function that is not a
measured region (for example of a system library) counts for the region that called it. Functions inside of an MPI
operation (MPI_Send or PMPI_Send) count for the operation.

Callgrind limits the length of chains, so a chain may lack the outer callers. Candidates are the call paths that end
with the first region of the chain. The chain counts for the candidate that contains the most of its regions in the same
order. If several candidates contain equally many, the shortest one is selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import CallTree, RegionKind


class CallPaths:
    """Finds the call path of a tree that belongs to a chain of functions."""

    def __init__(self, tree: CallTree) -> None:
        self._tree = tree
        self._regions = {region.name for region in tree.regions}
        self._mpi = {region.name for region in tree.regions if region.kind is RegionKind.MPI}
        self._endings: dict[str, list[int]] = {}
        for path in range(len(tree)):
            self._endings.setdefault(tree.region_of(path).name, []).append(path)
        self._known: dict[tuple[str, ...], int] = {}

    def find(self, chain: Sequence[str]) -> int:
        """Return the index of the call path of a chain of functions, innermost first; -1 if no function is a region."""
        regions = self._regions_of(chain)
        if not regions:
            return -1
        if regions not in self._known:
            self._known[regions] = self._search(regions)
        return self._known[regions]

    def _regions_of(self, chain: Sequence[str]) -> tuple[str, ...]:
        """Return the regions in a chain, innermost first."""
        found: list[str] = []
        for function in chain:
            name = self._region(function)
            if name in self._mpi:
                found = [name]  # the functions before it were called by the operation and belong to it
            elif name:
                found.append(name)
        return tuple(found)

    def _region(self, function: str) -> str:
        if function in self._regions:
            return function
        plain = function.removeprefix("P") if function.startswith("PMPI_") else function
        return plain if plain in self._regions else ""

    def _search(self, regions: tuple[str, ...]) -> int:
        """Return the call path that contains the most regions of the chain; of several, the one with the least depth.

        A call path may contain further regions between them: inlined functions are not in the chain.
        """
        best, best_score = -1, (-1, 0)
        for path in self._endings[regions[0]]:
            score = (self._agreement(path, regions), -int(self._tree.depth[path]))
            if score > best_score:
                best, best_score = path, score
        return best

    def _agreement(self, path: int, regions: tuple[str, ...]) -> int:
        """Return how many regions, from the innermost on, occur in this order in a call path and its callers."""
        place, node = 0, path
        while node >= 0 and place < len(regions):
            if self._tree.region_of(node).name == regions[place]:
                place += 1
            node = int(self._tree.parent[node])
        return place


def attributed(
    tree: CallTree, costs: Iterable[tuple[Sequence[str], Sequence[int]]], events: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of call paths, shape (call paths, events), and of chains without a region, shape (events,).

    costs: pairs of a chain of functions, innermost first, and its counts (one per event).
    """
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
    """Return the names of functions of a tree that callgrind did not find, because the compiler inlined them.

    seen: linker names of all functions that callgrind found.
    """
    functions = {tree.region_of(path) for path in range(len(tree))}
    return sorted(one.display for one in functions if one.kind is RegionKind.FUNCTION and one.name not in seen)


def levels_of(costs: NDArray[np.int64], events: Sequence[str]) -> Mapping[str, NDArray[np.int64]]:
    """Return the counts of each metric, shape (…), from the counts of callgrind, shape (…, events).

    events: the event of each column; missing events count as 0. Ir: instructions; Dr, Dw: reads and writes of data;
    D1mr, D1mw, DLmr, DLmw: reads and writes that miss the first-level (D1) and the last-level cache (DL). Valgrind
    simulates only these two levels. An access that misses D1 and not DL is therefore a hit of the last-level cache.
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
