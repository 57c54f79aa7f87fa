# SPDX-License-Identifier: Apache-2.0
"""Keep visits and counters of the call paths of a profile, to compute how often count classes were executed.

A count class is a set of basic blocks of a function that are executed equally often (agent/source/classes.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray, Metric, Region

from ..layout import LAYOUT
from .effort import Counters, Weights, counted_values, rows_of_owners
from .nodes import NodeArrays, distinct

_ROW_BITS = 32  # in the keys of weights: region × 2^32 + row
_MOST_COUNTERS = LAYOUT.numbers["MOST_COUNTERS"]

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class CounterEntries:
    """The counts of each node, separately for each region that counts for the node.

    A region that a filter excludes counts for its caller. An entry is one count. The arrays node, region, row and
    source have the shape (entries,).

    - node: index of the node. region: index into `regions` of the region that counted.
    - row: 0: the count is the visits of the region; i: it is counter i of the region.
    - source: index of the count in `KeptCounters.value`.
    - weights: for each region the effort per count, shape (rows, metrics), modulo 2^64.
    """

    node: IntArray
    region: IntArray
    row: IntArray
    source: IntArray
    regions: tuple[Region, ...]
    weights: tuple[Words, ...]


@dataclass(frozen=True, eq=False)
class KeptCounters:
    """Visits and counters of a process. All fields except `value` are their arrangement, equal in many processes.

    - value: visits of all nodes of the file, then all counters, then a 0; shape (nodes + counters + 1,).
    - place, number, owner: for each node of the file, shape (nodes,). place: index of the node of the profile that
      contains its effort. number: index of its region in `regions`. owner: index of its owner (see NodeArrays).
    - counters: node and row of each counter, without values.
    - weights: weights of these regions. names: names of the metrics of the weights.
    - regions: None for an id without a description.
    """

    value: Words
    place: IntArray
    number: IntArray
    owner: IntArray
    counters: Counters
    weights: Weights
    regions: tuple[Region | None, ...]
    names: tuple[str, ...]

    def is_arranged_as(self, other: KeptCounters) -> bool:
        """Return whether the counters of two processes differ only in their values."""
        pairs = (
            (self.place, other.place),
            (self.number, other.number),
            (self.owner, other.owner),
            (self.counters.node, other.counters.node),
            (self.counters.row, other.counters.row),
            (self.weights.key, other.weights.key),
            (self.weights.values, other.weights.values),
        )
        return (
            (self.names, self.weights.metric) == (other.names, other.weights.metric)
            and all(own is its or np.array_equal(own, its) for own, its in pairs)
            and self.regions == other.regions
        )

    def of_nodes(self, position: IntArray) -> KeptCounters:
        """Return the counters of some nodes of the profile. position: new index of each node; -1: left out."""
        keep = position[self.place] >= 0
        renumbered = np.where(keep, np.cumsum(keep) - 1, -1)
        owner = self.owner[keep]
        kept = keep[self.counters.node]
        return replace(
            self,
            value=self.value[np.concatenate((keep, kept, [True]))],
            place=position[self.place[keep]],
            number=self.number[keep],
            owner=np.where(owner >= 0, renumbered[owner], -1),
            counters=replace(self.counters, node=renumbered[self.counters.node[kept]], row=self.counters.row[kept]),
        )

    def entries(self) -> CounterEntries:
        """Return the counts of all regions with weights: their visits, then their counters, then inlined regions."""
        number, counters = self.number, self.counters
        weighted, first = np.unique(self.weights.key >> _ROW_BITS, return_index=True)
        rows = np.diff(np.append(first, self.weights.key.size))
        place = np.full(len(self.regions), -1, dtype=np.int64)
        regions: list[Region] = []
        weights: list[Words] = []
        for which, begin, count in zip(weighted.tolist(), first.tolist(), rows.tolist(), strict=True):
            entry = self.regions[which]
            row = self.weights.key[begin : begin + count] - (which << _ROW_BITS)
            if entry is not None and int(row[-1]) <= _MOST_COUNTERS + 1:
                place[which] = len(regions)
                regions.append(entry)
                weights.append(np.zeros((int(row[-1]) + 1, self.weights.values.shape[1]), dtype=np.uint64))
                weights[-1][row] = self.weights.values[begin : begin + count]
        inner, inner_row, inner_source = rows_of_owners(self.owner, counters, self.weights, number)
        visited = np.flatnonzero((place[number] >= 0) & (self.owner < 0))
        used = np.flatnonzero(place[number[counters.node]] >= 0)
        inside = place[number[inner]] >= 0
        node = np.concatenate((visited, counters.node[used], inner[inside]))
        inside_row = self.weights.key[inner_row[inside]] % (1 << _ROW_BITS)
        return CounterEntries(
            node=self.place[node],
            region=place[number[node]],
            row=np.concatenate((np.zeros(visited.size, dtype=np.int64), counters.row[used], inside_row)),
            source=np.concatenate((visited, number.size + used, inner_source[inside])),
            regions=tuple(regions),
            weights=tuple(weights),
        )


def keep_counters(
    nodes: NodeArrays,
    counters: Counters,
    tables: Sequence[Weights],
    place: IntArray,
    known: Mapping[int, Region],
    metrics: Sequence[Metric],
) -> KeptCounters | None:
    """Return visits and counters of the nodes, with the first of `tables` that has weights of effort; None if none has.

    nodes, counters, tables: as in the file. place: for each of these nodes, the index of the node that contains its
    effort after the nodes of left-out regions were removed (`fold_left_out`). known: regions by id.
    """
    names = [metric.name for metric in metrics]
    table = next((table for table in tables if names[table.metric] != "visits"), None)
    if table is None or "visits" not in names:
        return None
    ids = distinct(nodes.region)
    return KeptCounters(
        value=counted_values(nodes.counts[:, names.index("visits")], counters),
        place=place,
        number=np.searchsorted(ids, nodes.region),
        owner=nodes.owner,
        counters=replace(counters, value=counters.value[:0]),
        weights=table,
        regions=tuple(known.get(number) for number in ids.tolist()),
        names=tuple(names[table.metric : table.metric + table.values.shape[1]]),
    )
