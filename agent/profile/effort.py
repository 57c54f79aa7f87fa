# SPDX-License-Identifier: Apache-2.0
"""Compute the effort of call paths: visits and counters of nodes, times the weights of their regions.

The compiler pass determines the weights of a region: row 0 is the effort per visit, row i the effort per unit of
counter i. agent/runtime/profile.def contains the formula. The arithmetic is modulo 2^64. Single weights and terms may
be negative, but their sums are not.
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

_WORD = 8  # bytes
_ROWS = 1 << 32  # row numbers of a region are below this number
_SHAPES = 16  # largest number of different ranges of metrics in the weights of one program
_LARGEST = np.uint64((1 << 63) - 1)
_COUNTERS = np.dtype(LAYOUT.record("profile_counters"))
_WEIGHTS = np.dtype(LAYOUT.record("profile_weights"))

Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Counters:
    """Counters of nodes, ordered by node. node: index of the node. row: row of the weights, from 1. value: the count.

    All arrays have the shape (counters,).
    """

    node: IntArray
    row: IntArray
    value: Words


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of regions for some consecutive metrics.

    metric: number of the first metric. key: region × 2^32 + row, ascending, shape (rows,); region is the index of the
    region among the regions of the nodes, in ascending order of ids. values: shape (rows, metrics), modulo 2^64.
    """

    metric: int
    key: IntArray
    values: Words


def add_effort(
    nodes: NodeArrays, found: Counters, tables: Sequence[Weights], metrics: Sequence[Metric], problems: list[str]
) -> tuple[NodeArrays, NDArray[np.bool_]]:
    """Return the nodes with the effort of their visits and counters added to `counts`, and which metrics have weights.

    found, tables: results of `read_counters` and `read_weights` for these nodes. The second result has the shape
    (metrics,).
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
        problems.append(f"{unused} counters have no weights: their effort is missing")
    return replace(nodes, counts=counts), is_weighted


def sums_of(tables: Sequence[Weights], nodes: NodeArrays, found: Counters, visits: Words) -> Words:
    """Return for each node its visits and counters times the first column of the weights, shape (nodes,), modulo 2^64.

    The counts of inlined functions (nodes with an owner) are in the counts of their owners. visits: of each node, shape
    (nodes,).
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
    """Return the visits of all nodes, then all counters, then a 0. `rows_of_owners` returns indices in this array."""
    return np.concatenate((visits, found.value, np.zeros(1, dtype=np.uint64)))


def rows_of_owners(
    owner: IntArray, found: Counters, table: Weights, number: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the terms of the effort of all nodes with an owner: one term for each row of the weights of their regions.

    owner: index of the owner of each node; -1: none. number: region of each node, as in `Weights.key`. The results are
    three arrays of shape (terms,): the node, the index of the row in the table, and the index of the count in
    `counted_values`. The result has no terms for missing rows, because a function with many counters may contain many
    inlined functions with few rows each.
    """
    inner = np.flatnonzero(owner >= 0)
    begin = np.searchsorted(table.key, number[inner] * _ROWS)
    length = np.searchsorted(table.key, (number[inner] + 1) * _ROWS) - begin
    node = np.repeat(inner, length)
    row = np.arange(node.size) + np.repeat(begin - (np.cumsum(length) - length), length)
    counter = table.key[row] % _ROWS - 1  # number of a counter of the owner; 0: its visits
    nowhere = owner.size + found.node.size  # index of the 0 in `counted_values`
    source = np.where(counter == 0, owner[node], nowhere)
    if found.node.size:
        place = np.searchsorted(found.node, owner[node]) + counter - 1
        place = np.minimum(place, found.node.size - 1)
        counted = (counter > 0) & (found.node[place] == owner[node]) & (found.row[place] == counter)
        source = np.where(counted, owner.size + place, source)
    return node, row, source


def fold_left_out(nodes: NodeArrays, left_out: Set[int], metrics: Sequence[Metric]) -> tuple[NodeArrays, IntArray]:
    """Remove the nodes of regions that a filter excludes.

    left_out: ids of these regions. Returns the remaining nodes and, for each old node, the index of the remaining node
    that contains its values, shape (old nodes,). The values of a removed node, except its visits, are added to the next
    remaining node above. Roots are kept.
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
    """Return the counts, shape (nodes, metrics), with 0 instead of negative times, and a note if there were any.

    Times are unsigned differences of clock readings. If the clock is set back, a difference becomes a very large number
    (above 2^63), which means a negative time.
    """
    times = np.array([metric.unit == "s" and not metric.is_effort for metric in metrics], dtype=bool)
    negative = (counts > _LARGEST) & times
    if not negative.any():
        return counts, []
    many = counted(int(negative.any(axis=1).sum()), "call path has a time", "call paths have times")
    return np.where(negative, np.uint64(0), counts), [f"the clock was set back: {many} below zero, replaced by 0"]


def signed(counts: Words, is_weighted: NDArray[np.bool_], problems: list[str]) -> NDArray[np.int64]:
    """Return the counts, shape (nodes, metrics), as int64, with 0 instead of negative effort.

    is_weighted: whether a metric is effort, shape (metrics,). Other counts above 2^63 are damaged and become 2^63 - 1.
    If a process is killed between the updates of two counters of a region, its effort can be slightly negative.
    """
    beyond = counts > _LARGEST
    if bool(beyond.any()):
        below = int(np.count_nonzero(beyond & is_weighted))
        if below:
            problems.append(f"{below} weighted sums are below zero, because some counters were not written: set to 0")
        if bool((beyond & ~is_weighted).any()):
            problems.append("some counters are beyond 2^63: they are damaged and count as the largest number")
        counts = np.where(beyond, np.where(is_weighted, np.uint64(0), _LARGEST), counts)
    return counts.astype(np.int64)


def _rows(table: Weights, key: IntArray) -> tuple[IntArray, IntArray]:
    """Return the indices in `key` of the keys that have a row in the table, and the indices of these rows."""
    if not table.key.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    place = np.minimum(np.searchsorted(table.key, key), table.key.size - 1)
    found = np.flatnonzero(table.key[place] == key)
    return found, place[found]


@dataclass(frozen=True, eq=False)
class CounterPlaces:
    """Positions of the counters in the 64-bit words of all chunks of counters.

    head: position of each record, whether in use or not. The other arrays have the shape (counters,) and contain the
    counters of known nodes, grouped by node. node: index of the node. row: row of the weights, from 1. value: position
    of the value.
    """

    head: IntArray
    node: IntArray
    row: IntArray
    value: IntArray


def counter_places(words: Words, ends: IntArray, nodes: NodeArrays, problems: list[str]) -> CounterPlaces:
    """Return the positions of the counters of all nodes. words, ends: the result of `words_of`.

    Records of unknown nodes, and further records of the same node, are left out and reported in `problems`.
    """
    headers = words.view(_COUNTERS)
    count = headers["count"].astype(np.int64)
    head = _records(words.size, ends, 1 + count, problems)
    start = head[words[head] != 0]  # the records that are in use
    ids, first = np.unique(headers["node"][start].astype(np.int64), return_index=True)
    place = np.searchsorted(nodes.id, ids)
    known = place < nodes.id.size
    known[known] = nodes.id[place[known]] == ids[known]
    strange = start.size - int(known.sum())
    if strange:
        problems.append(
            f"{strange} records of counters belong to no call path, or to a call path that already has counters: "
            "they were left out"
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
    """Return the weights of the regions of the nodes: one table for each range of consecutive metrics in the file.

    Damaged records are left out and reported in `problems`.
    """
    regions = distinct(nodes.region)
    words, ends = words_of(chunks)
    head = _WEIGHTS.itemsize // _WORD
    padded = np.concatenate((words, np.zeros(head, dtype=np.uint64)))
    headers = np.ndarray(words.size, _WEIGHTS, padded, strides=(_WORD,))  # the header that would begin at each word
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
        problems.append(f"{lost} records of weights are damaged and were left out")
    return tables


def _table(
    metric: int, width: int, words: Words, start: IntArray, records: NDArray[np.void], number: IntArray
) -> Weights:
    """Return the weights in records for the same metrics, without duplicate rows.

    metric, width: number of the first metric, and number of metrics. start: position in `words` of the weights of each
    record. number: region of each record, as in `Weights.key`.
    """
    count = records["count"].astype(np.int64)
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    row = np.repeat(records["first"].astype(np.int64), count) + offset
    key = np.repeat(number, count) * _ROWS + np.minimum(row, _ROWS - 1)
    key, place = np.unique(key, return_index=True)
    begin = (np.repeat(start, count) + offset * width)[place]
    return Weights(metric, key, words[begin[:, None] + np.arange(width)])


def words_of(chunks: Sequence[Chunk]) -> tuple[Words, IntArray]:
    """Return the contents of the chunks as one array of 64-bit words, and the index at which each chunk ends."""
    pieces = [np.frombuffer(chunk.content, dtype="<u8", count=len(chunk.content) // _WORD) for chunk in chunks]
    ends = np.cumsum([piece.size for piece in pieces], dtype=np.int64)
    return np.concatenate([np.zeros(0, dtype=np.uint64), *pieces]), ends


def _records(size: int, ends: IntArray, length: IntArray, problems: list[str]) -> IntArray:
    """Return the positions of the records in the words of all chunks, ascending.

    size: number of words. ends: index at which each chunk ends. length: for each word, the length (words) of the record
    that would begin at this word. The first record of a chunk is at its start, and the others follow without gaps. A
    record that would reach beyond its chunk is damaged: the rest of the chunk is left out and reported in `problems`.
    Pointer doubling on all chunks at once needs log2(records per chunk) passes over the words.
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
        problems.append(f"{bad} chunks of counters or weights are damaged: the rest of each is left out")
    return start[~broken[start]]
