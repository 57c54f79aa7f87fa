# SPDX-License-Identifier: Apache-2.0
"""Counters of call paths kept from a profile, to split effort by source line when ranks have been added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray, Metric, Region

from ..layout import LAYOUT
from .effort import Counters, Weights, counters_of_owners
from .nodes import NodeArrays

_ROW_BITS = 32
_MOST_COUNTERS = LAYOUT.numbers["MOST_COUNTERS"]


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
        row = table.key[begin : begin + count] - (which << _ROW_BITS)
        if entry is not None and int(row[-1]) <= _MOST_COUNTERS + 1:
            place[which] = len(regions)
            regions.append(entry)
            weights.append(np.zeros((int(row[-1]) + 1, table.values.shape[1]), dtype=np.uint64))
            weights[-1][row] = table.values[begin : begin + count]
    visits = nodes.counts[:, names.index("visits")]
    inner, _ = counters_of_owners(nodes, counters, table, number, visits)
    visited = np.flatnonzero((place[number] >= 0) & (nodes.owner < 0))
    used = place[number[counters.node]] >= 0
    inside = place[number[inner.node]] >= 0
    node = np.concatenate((visited, counters.node[used], inner.node[inside]))
    return KeptCounters(
        node=owner[node],
        region=place[number[node]],
        row=np.concatenate((np.zeros(visited.size, dtype=np.int64), counters.row[used], inner.row[inside])),
        value=np.concatenate((visits[visited], counters.value[used], inner.value[inside])),
        regions=tuple(regions),
        weights=tuple(weights),
        names=tuple(names[table.metric : table.metric + table.values.shape[1]]),
    )
