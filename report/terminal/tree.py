# SPDX-License-Identifier: Apache-2.0
"""Show a call tree as a table: one line per call path, one column per metric and scope (inclusive, exclusive)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, FloatArray, RegionKind
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from ..text import START_AND_END, percent, quantity
from ..tree_selection import default_metrics, largest_with_callers
from ..views import REPETITIONS, Scope, Statistics, TreeOptions, TreeView, statistics
from .glyphs import Layout, clean, elide, wrapped
from .headings import CALL_PATH
from .names import shorten

_COLUMN_GAP = 2
START_AND_END_LINE = -1  # stands for the line with the sum of the start and the end of MPI, instead of a call path
_NARROWEST_PATH = 24  # smallest width of the column of call paths
_STYLES = {RegionKind.MPI: "cyan", RegionKind.OPENMP: "magenta", RegionKind.PYTHON: "yellow", RegionKind.USER: "green"}


@dataclass(frozen=True)
class Column:
    """One column of numbers. statistics: its values, each of shape (call paths,)."""

    metric: str
    scope: Scope
    statistics: Statistics


def columns_of(view: TreeView, options: TreeOptions) -> tuple[Column, ...]:
    """Return the requested columns. Raises ModelingError for a metric that the view does not contain."""
    names = options.metrics or default_metrics(view)
    if options.spread and not options.metrics:
        names = names[:1]
    return tuple(
        Column(name, scope, _statistics(view, name, scope, options.spread))
        for name in names
        for scope in _scopes(view, name, options)
    )


def _statistics(view: TreeView, name: str, scope: Scope, spread: bool) -> Statistics:
    """Return the statistics of a column. spread: whether minimum, maximum and imbalance are shown.

    Raises ModelingError for the spread of inclusive values if the view has no values of single ranks.
    """
    if not spread or view.spread is None:
        return statistics(view.scoped(name, scope), view.over)
    if scope == "inclusive":
        raise ModelingError(
            f"{view.title} contains statistics over the {view.samples}, so minima and maxima of inclusive values are "
            "unknown: add --exclusive"
        )
    return view.spread[name]


def _scopes(view: TreeView, name: str, options: TreeOptions) -> tuple[Scope, ...]:
    metric, scope = view.metric(name), options.scope
    if scope is not None:
        return (scope,)
    if name == "visits" or (options.spread and view.spread is not None):
        return ("exclusive",)
    return ("inclusive",) if metric.is_effort else ("inclusive", "exclusive")


def ordered_paths(
    tree: CallTree, weight: FloatArray, depth: int | None, kept: NDArray[np.bool_] | None = None
) -> list[tuple[int, tuple[bool, ...]]]:
    """Return the shown call paths depth first. Call paths with the same caller are in descending order of `weight`.

    The result contains for each call path its index, and a flag for each level from the root to the call path: whether
    its ancestor on this level is the last one below its caller. The start and the end of MPI come last, below
    `START_AND_END_LINE`.

    weight: shape (call paths,). depth: number of levels below the roots; None: all. kept: the call paths to show, shape
    (call paths,); None: all.
    """
    order: list[tuple[int, tuple[bool, ...]]] = []
    heavy, outside = np.nan_to_num(weight, nan=-1.0), tree.start_and_end
    kept = np.ones(len(tree), dtype=np.bool_) if kept is None else kept

    def add(heads: Sequence[int], above: tuple[bool, ...]) -> None:
        lightest_first = sorted(heads, key=lambda node: (heavy[node], -node))
        stack = [(node, (*above, at == 0)) for at, node in enumerate(lightest_first)]
        while stack:
            node, last = stack.pop()
            order.append((node, last))
            if depth is None or len(last) <= depth:
                below = [child for child in tree.children[node] if kept[child] and outside[child] == outside[node]]
                below.sort(key=lambda child: (heavy[child], -child))
                stack.extend((child, (*last, at == 0)) for at, child in enumerate(below))

    roots = [node for node in tree.roots if kept[node] and not outside[node]]
    for root in sorted(roots, key=lambda node: (-heavy[node], node)):
        add([root], ())
    heads = [node for node in start_and_end_heads(tree) if kept[node]]
    if heads:
        order.append((START_AND_END_LINE, (True,)))
        if depth is None or depth > 0:
            add(heads, (True,))
    return order


def start_and_end_heads(tree: CallTree) -> list[int]:
    """Return the indices of the outermost call paths of the start and the end of MPI."""
    outside = tree.start_and_end
    return [
        node for node in np.flatnonzero(outside).tolist() if tree.parent[node] < 0 or not outside[tree.parent[node]]
    ]


def call_tree(view: TreeView, options: TreeOptions, layout: Layout) -> Table:
    """Return the call tree of a run or of one configuration of an experiment as a table."""
    columns = columns_of(view, options)
    weight = _weight(view, options, columns)
    rows = ordered_paths(view.tree, weight, options.depth, largest_with_callers(view, options))
    cells = [_cells(view, column, [node for node, _ in rows], options.spread, layout) for column in columns]
    headings = [_headings(view, column, options.spread) for column in columns]
    share = _shares(view, columns)
    numeric = list(zip(chain(*headings), chain(*cells), strict=True))
    if share is not None:
        outside = view.tree.start_and_end
        texts = ["" if node < 0 or outside[node] else percent(share[node]) for node, _ in rows]
        numeric.insert(len(headings[0]), ("share", texts))
    labels = [_tree_lines(last, 3, layout) for _, last in rows]
    names = [
        START_AND_END if node == START_AND_END_LINE else clean(view.tree.name(node), layout.glyphs) for node, _ in rows
    ]
    natural = max((cell_len(guide + name) for guide, name in zip(labels, names, strict=True)), default=9)
    # If the user requests metrics, their columns have priority over long names. Default metrics have no priority.
    narrowest = _NARROWEST_PATH if options.metrics else max(_NARROWEST_PATH, layout.width * 2 // 5)
    kept, room = _fit(numeric, max(natural, len("call path")), narrowest, layout.width)
    deepest = max((len(last) - 1 for _, last in rows), default=0)
    step = next((step for step in (3, 2) if step * deepest <= room // 2), 1)
    if step < 3:
        labels = [_tree_lines(last, step, layout) for _, last in rows]
    labels = [elide(label, room // 2, layout.glyphs) for label in labels]
    names = [shorten(name, room - cell_len(label), layout.glyphs) for label, name in zip(labels, names, strict=True)]
    room = max((cell_len(label + name) for label, name in zip(labels, names, strict=True)), default=room)
    table = Table(box=None, pad_edge=False, padding=(0, _COLUMN_GAP, 0, 0), header_style="bold", show_edge=False)
    table.add_column(CALL_PATH, no_wrap=True, width=max(room, len(CALL_PATH)))
    for head, _ in kept:
        table.add_column(head, justify="right", no_wrap=True)
    for row, (node, _) in enumerate(rows):
        label = Text().append(labels[row], style="dim")
        label.append(names[row], style="dim" if node < 0 else _STYLES.get(view.tree.region_of(node).kind, ""))
        table.add_row(label, *(Text(body[row]) for _, body in kept))
    notes = _legend(view, columns, [node for node, _ in rows], list(chain(*(body for _, body in kept))), options.spread)
    if len(kept) < len(numeric):
        hidden = ", ".join(dict.fromkeys(head.split("\n")[0] for head, _ in numeric[len(kept) :]))
        notes.append(f"hidden columns: {hidden} (--metric selects columns)")
    if notes:
        lines = "\n".join(wrapped(note, layout.width) for note in notes)
        table.caption, table.caption_justify = Text(lines, style="dim"), "left"
    return table


def _legend(
    view: TreeView, columns: Sequence[Column], nodes: Sequence[int], cells: Sequence[str], spread: bool
) -> list[str]:
    """Return lines that explain "-" in cells, and call paths without visits. nodes: the shown call paths."""
    paths = [node for node in nodes if node >= 0]
    shown = {column.metric for column in columns}
    notes = []
    if spread and view.samples == REPETITIONS:
        notes.append("min, mean, max, scatter: over the repetitions; of one run, --ranks shows them over its ranks")
    if "-" in cells:
        if "time" in shown and _only_counted(view)[paths].any():
            notes.append("- in time: part of the caller's time")
        if any(np.isnan(view.values[name][paths]).all(axis=1).any() for name in shown):
            notes.append("-: not measured")
    if "visits" in view.values:
        unvisited = np.array(paths)[(view.values["visits"][paths] == 0.0).all(axis=1)]
        if unvisited.size and not all(_counted_in(view, unvisited)):
            notes.append("0 visits: not executed here")
    return notes


def _counted_in(view: TreeView, paths: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether any metric of a call path is not 0. Code outside of all regions has effort, but no visits."""
    found = np.zeros(len(paths), dtype=np.bool_)
    for values in view.values.values():
        found |= (np.nan_to_num(values[paths]) != 0.0).any(axis=1)
    return found


def _weight(view: TreeView, options: TreeOptions, columns: Sequence[Column]) -> FloatArray:
    if options.sort is not None:
        scope = options.scope or "inclusive"
        return statistics(view.scoped(options.sort, scope), view.over).value
    return columns[0].statistics.value if columns else np.zeros(len(view.tree))


def _tree_lines(last: tuple[bool, ...], step: int, layout: Layout) -> str:
    """Return the tree lines before a name. last: flags of `ordered_paths`. step: columns of the terminal per level."""
    if len(last) == 1:
        return ""
    glyphs = layout.glyphs
    above = "".join((glyphs.blank if done else glyphs.bar)[:step] for done in last[1:-1])
    branch = (glyphs.last if last[-1] else glyphs.branch)[:step]
    return above + branch + " " * (step < 3)


def _headings(view: TreeView, column: Column, spread: bool) -> list[str]:
    scope = "" if column.metric == "visits" else " incl" if column.scope == "inclusive" else " excl"
    if not spread:
        return [f"{column.metric}{scope}"]
    last = "scatter" if view.samples == REPETITIONS else "imbal."
    return [f"{column.metric}{scope}\n{word}" for word in ("min", "mean", "max", last)]


def _cells(view: TreeView, column: Column, nodes: list[int], spread: bool, layout: Layout) -> list[list[str]]:
    """Return the texts of a column: one list of values, or four lists of minima, means, maxima and imbalances.

    The line of the start and the end of MPI contains their sum.
    """
    metric = view.metrics[column.metric]
    found = column.statistics
    heads = start_and_end_heads(view.tree) if metric.over_locations == "sum" and column.metric != "visits" else []

    counted = _only_counted(view) if column.metric == "time" else np.zeros(len(view.tree), dtype=bool)

    def texts(values: FloatArray) -> list[str]:
        measured = np.where(counted & (values == 0.0), np.nan, values)
        numbers = (float(np.nansum(values[heads])) if node < 0 and heads else float(measured[node]) for node in nodes)
        shown = (clean(quantity(x, metric.unit), layout.glyphs) for x in numbers)
        return ["" if node < 0 and not heads else text for node, text in zip(nodes, shown, strict=True)]

    if not spread:
        return [texts(found.value)]
    imbalance = ["" if node < 0 else percent(float(found.imbalance[node])) for node in nodes]
    return [texts(found.min), texts(found.mean), texts(found.max), imbalance]


def _shares(view: TreeView, columns: Sequence[Column]) -> FloatArray | None:
    """Return the share of each call path in the program for the metric of the first column.

    The result is None if the metric does not add up over call paths, or is 0.
    """
    if not columns or view.metrics[columns[0].metric].over_locations != "sum":
        return None
    first = columns[0]
    total = float(view.tree.program_total(statistics(view.scoped(first.metric, "exclusive"), view.over).value))
    # Maxima and medians of call paths do not add up, so the inclusive values of the roots are the total.
    if view.over in ("max", "median") or first.metric in view.largest:
        roots = [root for root in view.tree.roots if not view.tree.start_and_end[root]]
        total = float(np.nansum(statistics(view.scoped(first.metric, "inclusive"), view.over).value[roots]))
    value = first.statistics.value
    if first.metric == "time":
        value = np.where(_only_counted(view) & (value == 0.0), np.nan, value)
    return value / total if total > 0 else None


def _only_counted(view: TreeView) -> NDArray[np.bool_]:
    """Return which call paths have visits but no time, because the times of their callers contain it.

    MPI operations always have times, so their 0 s is a measured time.
    """
    if "visits" not in view.values or "time" not in view.values:
        return np.zeros(len(view.tree), dtype=bool)
    visits, times = (view.values[name].reshape(len(view.tree), -1) for name in ("visits", "time"))
    is_mpi = np.array([region.kind is RegionKind.MPI for region in view.tree.regions], dtype=bool)[view.tree.region]
    result: NDArray[np.bool_] = (np.nan_to_num(visits) > 0).any(axis=1) & (times == 0.0).all(axis=1) & ~is_mpi
    return result


def _fit(
    numeric: list[tuple[str, list[str]]], natural: int, narrowest: int, width: int
) -> tuple[list[tuple[str, list[str]]], int]:
    """Return the columns that fit next to the call paths, and the width of the call paths.

    natural: width of the complete call paths. narrowest: smallest width of the call paths. width: of the terminal.
    """
    used = 0
    kept: list[tuple[str, list[str]]] = []
    for head, body in numeric:
        need = max(map(len, (*head.split("\n"), *body))) + _COLUMN_GAP
        if kept and used + need + min(natural, narrowest) + _COLUMN_GAP > width:
            break
        used += need
        kept.append((head, body))
    return kept, max(9, min(natural, width - used - _COLUMN_GAP))
