# SPDX-License-Identifier: Apache-2.0
"""Effort of call paths: counters of nodes times static weights of their regions.

agent/runtime/profile.def has the formula. All of it is arithmetic modulo 2^64 over whole arrays: single weights and
single terms may be negative, the sums are not.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray, Metric
from quipu.modeling.printable import counted

from ..layout import LAYOUT
from .chunks import Chunk
from .nodes import NodeArrays, distinct, region_ids, without_nodes

_WORD = 8
_ROWS = 1 << 32  # rows of a region have numbers below this
_SHAPES = 16  # different ranges of metrics that the weights of one program may have
_LARGEST = np.uint64((1 << 63) - 1)
_COUNTERS = np.dtype(LAYOUT.record("profile_counters"))
_WEIGHTS = np.dtype(LAYOUT.record("profile_weights"))

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Counters:
    """Counters of nodes: node (position among the nodes), row (of the weights, from 1) and value, one per counter."""

    node: IntArray
    row: IntArray
    value: Words


@dataclass(frozen=True, eq=False)
class Weights:
    """Rows of weights for the metrics from `metric` on.

    key: number of the region among those asked for × 2^32 + row, ascending; values: (rows, width).
    """

    metric: int
    key: IntArray
    values: Words


def add_effort(
    nodes: NodeArrays, found: Counters, tables: Sequence[Weights], metrics: Sequence[Metric], problems: list[str]
) -> tuple[NodeArrays, NDArray[np.bool_]]:
    """Return the nodes with the effort of their counters and visits, and a flag for each metric with effort.

    found, tables: what `read_counters` and `read_weights` return for these nodes.
    """
    counts = nodes.counts.copy()
    regions = distinct(nodes.region)
    number = np.searchsorted(regions, nodes.region)
    weighted = np.zeros(found.value.size, dtype=bool)
    is_weighted = np.zeros(len(metrics), dtype=bool)
    names = [metric.name for metric in metrics]
    visits = nodes.counts[:, names.index("visits")] if "visits" in names else np.zeros(number.size, dtype=np.uint64)
    for table in tables:
        entry, row = _rows(table, number[found.node] * _ROWS + found.row)
        weighted[entry] = True
        visited, first = _rows(table, np.where(nodes.owner < 0, number, -1) * _ROWS)
        inner, inner_row, source = rows_of_owners(nodes.owner, found, table, number)
        inner_count = counted_values(visits, found)[source] if source.size else visits[:0]
        starts = np.flatnonzero(np.diff(found.node[entry], prepend=-1))
        for column in range(table.values.shape[1]):
            total = counts[:, table.metric + column]
            total[visited] += visits[visited] * table.values[first, column]
            if starts.size:
                terms = found.value[entry] * table.values[row, column]
                total[found.node[entry][starts]] += np.add.reduceat(terms, starts)
            if source.size:
                np.add.at(total, inner, inner_count * table.values[inner_row, column])
        is_weighted[table.metric : table.metric + table.values.shape[1]] = True
    unused = int(np.count_nonzero(found.value[~weighted]))
    if unused:
        problems.append(f"{unused} counters have no weights: what they counted is missing")
    return replace(nodes, counts=counts), is_weighted


def sums_of(tables: Sequence[Weights], nodes: NodeArrays, found: Counters, visits: Words) -> Words:
    """Return the visits and counters of each node times the first column of the tables, for nodes without an owner.

    visits: of each node; shape of the result: (nodes,), modulo 2^64.
    """
    sums = np.zeros(nodes.id.size, dtype=np.uint64)
    number = np.searchsorted(distinct(nodes.region), nodes.region)
    for table in tables:
        entry, row = _rows(table, number[found.node] * _ROWS + found.row)
        np.add.at(sums, found.node[entry], found.value[entry] * table.values[row, 0])
        visited, first = _rows(table, np.where(nodes.owner < 0, number, -1) * _ROWS)
        sums[visited] += visits[visited] * table.values[first, 0]
    return sums


def counted_values(visits: Words, found: Counters) -> Words:
    """Return the visits of all nodes, then all counters, then 0: `rows_of_owners` has indices into this."""
    return np.concatenate((visits, found.value, np.zeros(1, dtype=np.uint64)))


def rows_of_owners(
    owner: IntArray, found: Counters, table: Weights, number: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the nodes that count with an owner, once for each row of their region in the table.

    owner, number: of each node, the number of its region in the table. With each node: the row of the table, and where
    its count is among `counted_values`. Only rows that the table has: a function with many counters may have many
    others in it, each in few of them.
    """
    inner = np.flatnonzero(owner >= 0)
    begin = np.searchsorted(table.key, number[inner] * _ROWS)
    length = np.searchsorted(table.key, (number[inner] + 1) * _ROWS) - begin
    node = np.repeat(inner, length)
    row = np.arange(node.size) + np.repeat(begin - (np.cumsum(length) - length), length)
    counter = table.key[row] % _ROWS - 1  # 0: the visits of the owner
    nowhere = owner.size + found.node.size
    source = np.where(counter == 0, owner[node], nowhere)
    if found.node.size:
        place = np.searchsorted(found.node, owner[node]) + counter - 1
        place = np.minimum(place, found.node.size - 1)
        counted = (counter > 0) & (found.node[place] == owner[node]) & (found.row[place] == counter)
        source = np.where(counted, owner.size + place, source)
    return node, row, source


def fold_left_out(nodes: NodeArrays, left_out: Set[int], metrics: Sequence[Metric]) -> tuple[NodeArrays, IntArray]:
    """Return the nodes without the nodes of left-out regions, and for every old node the index that has its effort now.

    What such a node has goes to the next node above that was not left out; its visits do not. Roots stay.
    """
    numbers = np.fromiter(left_out, dtype=np.int64, count=len(left_out))
    vanish = (nodes.parent >= 0) & np.isin(nodes.region, numbers)
    keep = ~vanish
    if bool(keep.all()):
        return nodes, np.arange(keep.size)
    above = without_nodes(nodes.parent, vanish)
    counts = nodes.counts.copy()
    for column, metric in enumerate(metrics):
        if metric.over_locations == "max":
            np.maximum.at(counts[:, column], above[vanish], counts[vanish, column])
        elif metric.name != "visits":
            np.add.at(counts[:, column], above[vanish], counts[vanish, column])
    position = np.cumsum(keep) - 1
    index = position[np.where(keep, np.arange(keep.size), above)]
    parent = np.where(above >= 0, position[above], -1)
    owner = np.where(nodes.owner >= 0, index[nodes.owner], -1)
    kept = NodeArrays(
        nodes.id[keep],
        parent[keep],
        nodes.region[keep],
        nodes.location[keep],
        nodes.address[keep],
        counts[keep],
        owner[keep],
        nodes.untimed[keep],
    )
    return kept, index


def without_negative_times(counts: Words, metrics: Sequence[Metric]) -> tuple[Words, list[str]]:
    """Return counts (nodes, metrics) with 0 for times below zero, and a note if there were any.

    Times are differences of a clock, as unsigned numbers: one that went back makes them wrap around.
    """
    times = np.array([metric.unit == "s" and not metric.is_effort for metric in metrics], dtype=bool)
    negative = (counts > _LARGEST) & times
    if not negative.any():
        return counts, []
    many = counted(int(negative.any(axis=1).sum()), "call path has a time", "call paths have times")
    return np.where(negative, np.uint64(0), counts), [f"the clock went back: {many} below zero, taken as 0"]


def signed(counts: Words, is_weighted: NDArray[np.bool_], problems: list[str]) -> NDArray[np.int64]:
    """Return counts (nodes, metrics) as int64, never negative.

    A process that is killed between two counters of a region may leave a weighted sum a little below zero: it is 0.
    """
    beyond = counts > _LARGEST
    if bool(beyond.any()):
        below = int(np.count_nonzero(beyond & is_weighted))
        if below:
            problems.append(
                f"{below} weighted sums are below zero, for want of counters that were not written: taken as 0"
            )
        if bool((beyond & ~is_weighted).any()):
            problems.append("some counters are beyond 2^63: they are damaged and count as the largest number")
        counts = np.where(beyond, np.where(is_weighted, np.uint64(0), _LARGEST), counts)
    return counts.astype(np.int64)


def _rows(table: Weights, key: IntArray) -> tuple[IntArray, IntArray]:
    """Return which of the keys have a row in the table, and which row."""
    if not table.key.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    place = np.minimum(np.searchsorted(table.key, key), table.key.size - 1)
    found = np.flatnonzero(table.key[place] == key)
    return found, place[found]


@dataclass(frozen=True, eq=False)
class CounterPlaces:
    """Where the records of counters are among the words of all their chunks.

    head: of each record, used or not; node, row, value: of each counter that belongs to a node, those of a node
    together: its position among the nodes, its row of the weights (from 1), and where its value is.
    """

    head: IntArray
    node: IntArray
    row: IntArray
    value: IntArray


def counter_places(words: Words, ends: IntArray, nodes: NodeArrays, problems: list[str]) -> CounterPlaces:
    """Return where the counters of all nodes are. words, ends: as `words_of` returns them."""
    headers = words.view(_COUNTERS)
    count = headers["count"].astype(np.int64)
    head = _records(words.size, ends, 1 + count, problems)
    start = head[words[head] != 0]  # room that was never filled
    ids, first = np.unique(headers["node"][start].astype(np.int64), return_index=True)
    place = np.searchsorted(nodes.id, ids)
    known = place < nodes.id.size
    known[known] = nodes.id[place[known]] == ids[known]
    strange = start.size - int(known.sum())
    if strange:
        problems.append(
            f"{strange} records of counters belong to no call path, or to one that has others, and were left out"
        )
    start, node = start[first[known]], place[known]
    length = count[start]
    row = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
    return CounterPlaces(head, np.repeat(node, length), row + 1, np.repeat(start + 1, length) + row)


def read_counters(chunks: Sequence[Chunk], nodes: NodeArrays, problems: list[str]) -> Counters:
    """Return the counters of all nodes, ordered by node."""
    words, ends = words_of(chunks)
    places = counter_places(words, ends, nodes, problems)
    return Counters(places.node, places.row, words[places.value])


def read_weights(chunks: Sequence[Chunk], nodes: NodeArrays, metric_count: int, problems: list[str]) -> list[Weights]:
    """Return the weights of the regions of the nodes, numbered in ascending order, one table per range of metrics."""
    regions = distinct(nodes.region)
    words, ends = words_of(chunks)
    head = _WEIGHTS.itemsize // _WORD
    padded = np.concatenate((words, np.zeros(head, dtype=np.uint64)))
    headers = np.ndarray(words.size, _WEIGHTS, padded, strides=(_WORD,))  # those that would begin at each word
    cells = headers["count"].astype(np.int64) * np.minimum(headers["metric_count"], 1 << 30).astype(np.int64)
    start = _records(words.size, ends, head + cells, problems)
    start = start[cells[start] > 0]
    records = headers[start]
    fits = records["metric"].astype(np.int64) + records["metric_count"] <= metric_count
    region = region_ids(records["region"])
    number = np.searchsorted(regions, region)
    used = number < regions.size
    used[used] = regions[number[used]] == region[used]
    lost = int(np.count_nonzero(~fits))
    use = np.flatnonzero(fits & used)
    shapes, shape = np.unique(records[["metric", "metric_count"]][use], return_inverse=True)
    tables = []
    for which, (metric, width) in enumerate(shapes[:_SHAPES].tolist()):
        chosen = use[shape == which]
        tables.append(_table(metric, width, words, start[chosen] + head, records[chosen], number[chosen]))
    lost += int(np.count_nonzero(shape >= _SHAPES))
    if lost:
        problems.append(f"{lost} records of weights make no sense and were left out")
    return tables


def _table(
    metric: int, width: int, words: Words, start: IntArray, records: NDArray[np.void], number: IntArray
) -> Weights:
    """Return the rows of records of one width. A row that is there twice counts once."""
    count = records["count"].astype(np.int64)
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    row = np.repeat(records["first"].astype(np.int64), count) + offset
    key = np.repeat(number, count) * _ROWS + np.minimum(row, _ROWS - 1)
    key, place = np.unique(key, return_index=True)
    begin = (np.repeat(start, count) + offset * width)[place]
    return Weights(metric, key, words[begin[:, None] + np.arange(width)])


def words_of(chunks: Sequence[Chunk]) -> tuple[Words, IntArray]:
    """Return the contents of the chunks as one array of 64-bit words, and where each chunk ends in it."""
    pieces = [np.frombuffer(chunk.content, dtype="<u8", count=len(chunk.content) // _WORD) for chunk in chunks]
    ends = np.cumsum([piece.size for piece in pieces], dtype=np.int64)
    return np.concatenate([np.zeros(0, dtype=np.uint64), *pieces]), ends


def _records(size: int, ends: IntArray, length: IntArray, problems: list[str]) -> IntArray:
    """Return where records begin, ascending: the first at the start of each chunk, each after the end of another.

    length: words of the record that would begin at each word. A record that leaves its chunk ends the chunk with a
    problem. Follows all chunks at once by pointer doubling: log(records per chunk) passes over the words.
    """
    place = np.arange(size)
    end = np.repeat(ends, np.diff(ends, prepend=0))
    following = place + length
    broken = following > end
    nowhere = size
    step = np.append(np.where(following < end, following, nowhere), nowhere)
    begins = np.diff(ends, prepend=0) > 0
    marked = np.zeros(size + 1, dtype=bool)
    marked[(ends - np.diff(ends, prepend=0))[begins]] = True
    while True:
        known = int(np.count_nonzero(marked))
        marked[step[marked]] = True
        marked[nowhere] = False
        if int(np.count_nonzero(marked)) == known:
            break
        step = step[step]
    start = np.flatnonzero(marked[:size])
    bad = int(np.count_nonzero(broken[start]))
    if bad:
        problems.append(f"{bad} chunks of counters or weights stop making sense: the rest of each is left out")
    return start[~broken[start]]
