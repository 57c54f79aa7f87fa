"""Counters of call paths kept from a profile, to split effort by source line when ranks have been added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray, Metric, Region

from .effort import Counters, Weights
from .nodes import NodeArrays

_ROW_BITS = 32


@dataclass(frozen=True, eq=False)
class KeptCounters:
    """What was counted at each node, by the region that counted it.

    node (where the effort is: quiet regions count for their callers), region (index into `regions`), row (0: visits,
    then counters): int64 of shape (entries,); value: uint64 (entries,). weights: of each region, uint64 (rows,
    metrics), for the metrics `names`.
    """

    node: IntArray
    region: IntArray
    row: IntArray
    value: NDArray[np.uint64]
    regions: tuple[Region, ...]
    weights: tuple[NDArray[np.uint64], ...]
    names: tuple[str, ...]

    def of_nodes(self, position: IntArray) -> KeptCounters:
        """Return what belongs to some of the nodes. position: per node its new index, -1: left out."""
        keep = position[self.node] >= 0
        node = position[self.node[keep]]
        return replace(self, node=node, region=self.region[keep], row=self.row[keep], value=self.value[keep])


def keep_counters(
    nodes: NodeArrays,
    counters: Counters,
    tables: Sequence[Weights],
    owner: IntArray,
    known: Mapping[int, Region],
    metrics: Sequence[Metric],
) -> KeptCounters | None:
    """Return the counters of the regions in the first table of weights of effort; None if there are none.

    nodes, counters, tables: before quiet regions were folded; owner: per node the index of where its effort is after.
    """
    names = [metric.name for metric in metrics]
    table = next((table for table in tables if names[table.metric] != "visits"), None)
    if table is None or "visits" not in names:
        return None
    ids, number = np.unique(nodes.region, return_inverse=True)
    weighted, first = np.unique(table.key >> _ROW_BITS, return_index=True)
    rows = np.diff(np.append(first, table.key.size))
    place = np.full(ids.size, -1, dtype=np.int64)
    regions: list[Region] = []
    weights: list[NDArray[np.uint64]] = []
    for which, begin, count in zip(weighted.tolist(), first.tolist(), rows.tolist(), strict=True):
        entry = known.get(int(ids[which]))
        whole = bool((table.key[begin : begin + count] == (which << _ROW_BITS) + np.arange(count)).all())
        if entry is not None and whole:
            place[which] = len(regions)
            regions.append(entry)
            weights.append(table.values[begin : begin + count])
    visited = np.flatnonzero(place[number] >= 0)
    used = place[number[counters.node]] >= 0
    node = np.concatenate((visited, counters.node[used]))
    return KeptCounters(
        node=owner[node],
        region=place[number[node]],
        row=np.concatenate((np.zeros(visited.size, dtype=np.int64), counters.row[used])),
        value=np.concatenate((nodes.counts[visited, names.index("visits")], counters.value[used])),
        regions=tuple(regions),
        weights=tuple(weights),
        names=tuple(names[table.metric : table.metric + table.values.shape[1]]),
    )
