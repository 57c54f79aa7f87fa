# SPDX-License-Identifier: Apache-2.0
"""Collect single measurements in any order into an experiment. The readers of all formats of Extra-P use this module.

In the functions, `source` and `line` are the file and line for errors, and `what` names the entry at fault.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from quipu.modeling.callpath_text import steps_of
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region, RegionKind
from quipu.modeling.limits import current
from quipu.modeling.metrics import metric_named

DEFAULT_CALLPATH = "<root>"
DEFAULT_METRIC = "<default>"
"""The names by which Extra-P calls a call path and a metric without a name."""

_MOST_VALUES = 1 << 20  # repetitions of a measurement
_ENTRY_BYTES, _NUMBER_BYTES = 300, 32  # memory of an entry of a dictionary with its value, and of a number in a list


def number(value: Any, source: object, what: str, line: int | None = None) -> float:
    """Return a value as a finite number; NaN if it is None or NaN (missing). Raises FormatError for other values."""
    if value is None:
        return math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if not math.isinf(found):
            return found
        raise FormatError(source, f"{what}: the number is infinite: write nan or leave it out if it is unknown", line)
    raise FormatError(source, f"{what}: {_short(value)} is not a number", line)


def repetitions(value: Any, source: object, what: str, line: int | None = None) -> list[float]:
    """Return one number per repetition. Raises FormatError for a value that is not a number.

    value: a number, a list with an entry per repetition, or a single entry. An entry is a number or a list of the
    values of ranks or threads, whose mean counts.
    """
    if not isinstance(value, list):
        return [number(value, source, what, line)]
    if all(type(entry) is float for entry in value) and math.isfinite(sum(value)):
        return value  # fast return for the usual case
    if len(value) > _MOST_VALUES:
        raise FormatError(source, f"{what}: more than {_MOST_VALUES} repetitions", line)
    found = []
    for entry in value:
        if isinstance(entry, list):  # one value per rank or thread
            inner = [number(single, source, what, line) for single in entry]
            known = [single for single in inner if not math.isnan(single)]
            found.append(math.fsum(single / len(known) for single in known) if known else math.nan)
        else:
            found.append(number(entry, source, what, line))
    return found


def text_of(value: Any, source: object, what: str, line: int | None = None) -> str:
    """Return a value that is a text. Raises FormatError for another value."""
    if not isinstance(value, str):
        raise FormatError(source, f"{what}: {_short(value)} is not a name: write it in quotes", line)
    return value


def _short(value: Any) -> str:
    text = "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)
    return text if len(text) < 50 else text[:47] + "..."


class TreeBuilder:
    """Builds a call tree from single call paths."""

    def __init__(self) -> None:
        self._regions: dict[str, Region] = {}
        self._nodes: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, parent: int, region: Region) -> int:
        """Return the index of the call path of a region below `parent` (-1: a root); add the call path if it is new."""
        self._regions.setdefault(region.name, region)
        return self._nodes.setdefault((parent, region.name), len(self._nodes))

    def tree(self) -> CallTree:
        """Return the tree of all call paths."""
        places = {name: place for place, name in enumerate(self._regions)}
        region = np.array([places[name] for _, name in self._nodes], dtype=np.int64)
        parent = np.array([parent for parent, _ in self._nodes], dtype=np.int64)
        return CallTree(tuple(self._regions.values()), region, parent)


class Collector:
    """Collects measurements in any order; `experiment` returns all of them.

    values: repetitions of each measurement, by metric, call path and configuration (indices).
    """

    def __init__(self, source: object, parameters: Sequence[str], line: int | None = None) -> None:
        self.source = source
        self.notes: list[str] = []
        self.parameters = self._parameter_names(parameters, line)
        self.values: dict[str, dict[int, dict[int, list[float]]]] = {}
        self._points: dict[tuple[float, ...], int] = {}
        self._nodes: dict[str, int] = {}
        self._tree = TreeBuilder()
        self._cost = current()

    def _parameter_names(self, given: Sequence[str], line: int | None) -> tuple[str, ...]:
        """Return the names of the parameters with `_` instead of characters that are awkward in a shell.

        Raises FormatError if there are no names or two equal names.
        """
        names = []
        for name in given:
            typed = re.sub(r"[^A-Za-z0-9_]", "_", name.strip())
            typed = typed if typed and not typed[0].isdigit() else f"_{typed}"
            if typed != name:
                self.notes.append(f"parameter {name!r} is called {typed} here")
            names.append(typed)
        if not names:
            raise FormatError(self.source, "contains no parameter: measurements need at least one", line)
        if twice := sorted(name for name, count in Counter(names).items() if count > 1):
            raise FormatError(self.source, f"parameter {', '.join(twice)} is named twice", line)
        return tuple(names)

    def point(self, values: Any, what: str, line: int | None = None) -> int:
        """Return the index of a configuration; add the configuration if it is new. Raises FormatError if it is invalid.

        values: a list with one number per parameter; for one parameter also the number alone.
        """
        entries = values if isinstance(values, list | tuple) else [values]
        if len(entries) != len(self.parameters):
            raise FormatError(
                self.source,
                f"{what}: the point has {len(entries)} numbers, there are {len(self.parameters)} parameters "
                f"({', '.join(self.parameters)})",
                line,
            )
        place = tuple(number(entry, self.source, f"{what}: point", line) for entry in entries)
        if any(map(math.isnan, place)):
            raise FormatError(self.source, f"{what}: a parameter value of the point is not a number", line)
        if place not in self._points:
            self._cost.spend(_ENTRY_BYTES + _NUMBER_BYTES * len(place))
        return self._points.setdefault(place, len(self._points))

    def add(self, callpath: str, metric: str, point: int, values: list[float]) -> None:
        """Append repetitions of a metric of a call path ("main->foo"). point: index of the configuration."""
        if not values:
            return
        node = self._nodes.get(callpath)
        if node is None:
            node = self._nodes[callpath] = self._node(callpath)
        self._cost.spend(_ENTRY_BYTES + _NUMBER_BYTES * len(values))
        places = self.values.setdefault(metric or DEFAULT_METRIC, {}).setdefault(node, {})
        if point in places:
            places[point].extend(values)
        else:
            places[point] = list(values)

    def _node(self, callpath: str) -> int:
        node = -1
        names = steps_of(callpath)
        self._cost.check_depth(len(names))
        self._cost.check_time()
        for name in names:
            self._cost.spend(_ENTRY_BYTES)
            region = name or (DEFAULT_CALLPATH if not callpath.strip() else "<unnamed>")
            node = self._tree.node(node, Region(region, region, kind_of(region)))
        return node

    def experiment(self, name: str, notes: Sequence[str] = ()) -> Experiment:
        """Return an experiment with all measurements. Configurations are in ascending order; missing values are NaN.

        name: of the experiment. Raises FormatError if there are no measurements, or too many for the memory limit.
        """
        if not self.values:
            raise FormatError(self.source, "contains no measurements")
        ordered = sorted(self._points)
        place = np.empty(len(ordered), dtype=np.int64)
        for number_, point in enumerate(ordered):
            place[self._points[point]] = number_
        return Experiment(
            name=name,
            parameters=self.parameters,
            points=np.array(ordered, dtype=np.float64).reshape(len(ordered), len(self.parameters)),
            tree=self._tree.tree(),
            metrics={metric: metric_named(metric) for metric in self.values},
            values={metric: self._dense(metric, place) for metric in self.values},
            notes=(*notes, *self.notes),
        )

    def _dense(self, metric: str, place: np.ndarray[Any, np.dtype[np.int64]]) -> FloatArray:
        """Return the values of a metric, shape (call paths, configurations, repetitions).

        place: position of each configuration in ascending order.
        """
        places = self.values[metric]
        most = max(len(values) for by_point in places.values() for values in by_point.values())
        shape = (len(self._tree), place.size, most)
        self._cost.spend(8 * math.prod(shape))
        self._cost.check_time()
        dense = np.full(shape, np.nan)
        for node, by_point in places.items():
            for point, values in by_point.items():
                dense[node, place[point], : len(values)] = values
        return dense


def kind_of(name: str) -> RegionKind:
    """Return the kind of a region by its name: MPI operation, OpenMP construct (names of Score-P), or function."""
    if re.match(r"P?MPI_[A-Z]", name):
        return RegionKind.MPI
    return RegionKind.OPENMP if name.startswith("!$omp") else RegionKind.FUNCTION
