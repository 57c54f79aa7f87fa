# SPDX-License-Identifier: Apache-2.0
"""Read the annotations of a program: its parameters, and the iterations of its phases.

agent/runtime/annotations.cpp and iterations.cpp record them as attributes of the profile. A phase is a loop that the
program marked, such as the time loop.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.documents import is_number, is_parameter
from quipu.modeling.metrics import METRICS

from ..archive.run import IterationTable
from .ranks import RankedProcess

_PARAMETER, _ITERATIONS = "parameter:", "iterations:"
_SPAN = re.compile(r"-?[0-9]{1,19} -?[0-9]{1,19}(?: [0-9]{1,20}){3,}", re.ASCII)
_HEAD = 5  # count of the numbers of a span before the values of the metrics: see `_spans`


def parameters_of(processes: Iterable[RankedProcess], given: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
    """Return the parameters of a run, and texts about contradictions.

    given: parameters that the user gave. The program may add parameters by annotations; parameters of the user have
    priority. An annotated parameter whose value differs between ranks is left out.
    """
    said: dict[str, dict[float, int]] = defaultdict(dict)
    for process in processes:
        for key, text in process.profile.attributes.items():
            name, value = key.removeprefix(_PARAMETER), _number(text)
            if key.startswith(_PARAMETER) and is_parameter(name) and is_number(value):
                said[name].setdefault(value, process.rank)
    found, problems = dict(given), []
    for name, values in sorted(said.items()):
        if len(values) > 1:
            low, high = min(values), max(values)
            problems.append(f"parameter {name}: the ranks disagree about it ({low:g} to {high:g}), and it was left out")
        elif name not in given:
            found[name] = next(iter(values))
        elif not math.isclose(given[name], next(iter(values)), rel_tol=1e-12):
            problems.append(
                f"parameter {name}: the program sets {next(iter(values)):g}, but the run has {given[name]:g}"
            )
    return found, problems


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


@dataclass
class _Spans:
    """The iterations of one phase in one thread. A span is a sequence of consecutive iterations.

    - width: number of iterations of a span; the last span may have fewer.
    - numbers: int64 of shape (spans, 2), the numbers of the first and the last iteration of each span.
    - values: float64 of shape (spans, 3 + metrics): number of iterations; number of those whose effort is in
      the sums (the runtime does not compute it after each iteration, agent/runtime/iterations.cpp); seconds; and
      the sum of each metric in `METRICS`.
    """

    width: int
    numbers: NDArray[np.int64]
    values: NDArray[np.float64]

    def widened(self, width: int) -> _Spans:
        """Return the iterations with spans of `width` iterations, a multiple of the present width."""
        starts = np.arange(0, len(self.values), max(1, width // self.width))
        ends = np.append(starts[1:], len(self.values)) - 1
        numbers = np.stack([self.numbers[starts, 0], self.numbers[ends, 1]], axis=1)
        return _Spans(width, numbers, np.add.reduceat(self.values, starts, axis=0))


def iterations_of(processes: Iterable[RankedProcess]) -> IterationTable | None:
    """Return the iterations of all phases of a run, as means and maxima over its ranks; None if no rank has a phase.

    If several threads of a rank run a phase, the time of the rank is the time of the slowest thread, and its effort is
    the sum over the threads.
    """
    by_phase: dict[str, dict[int, list[_Spans]]] = defaultdict(lambda: defaultdict(list))
    for process in processes:
        for key, text in process.profile.attributes.items():
            thread, _, name = key.removeprefix(_ITERATIONS).partition(":")
            spans = _spans(text, process.profile.seconds_per_tick) if key.startswith(_ITERATIONS) and thread else None
            if spans is not None:
                by_phase[name][process.rank].append(spans)
    if not by_phase:
        return None
    rows: list[tuple[str, int, int, int, int, str, float, float]] = []
    for phase, ranks in by_phase.items():
        rows += _rows(phase, list(ranks.values()))
    first, last, count, there = (np.array([row[place] for row in rows], dtype=np.int64) for place in range(1, 5))
    mean, most = (np.array([row[place] for row in rows], dtype=np.float64) for place in (6, 7))
    return IterationTable([row[0] for row in rows], first, last, count, there, [row[5] for row in rows], mean, most)


def _spans(text: str, seconds_per_tick: float) -> _Spans | None:
    """Return the spans in an attribute of a profile (agent/runtime/iterations.cpp); None if the text is invalid.

    Format: width;span;span;… Each span has the numbers of its first and its last iteration, the number of iterations,
    its ticks, the number of iterations with known effort, and a sum for each metric.
    """
    width, *parts = text.split(";")
    if not (width.isdecimal() and len(width) < 19) or int(width) == 0:
        return None
    numbers, values = [], []
    for part in parts:
        words = part.split()
        if not _SPAN.fullmatch(part) or len(words) != _HEAD + len(METRICS):
            return None
        first, last, count, ticks, counted = map(int, words[:_HEAD])
        if count == 0 or max(abs(first), abs(last)) >= 1 << 62:
            continue
        sums = [float(np.array(int(word) % (1 << 64), dtype=np.uint64).astype(np.int64)) for word in words[_HEAD:]]
        numbers.append((first, last))
        values.append((count, counted, ticks * seconds_per_tick, *sums))
    if not values:
        return None
    table = np.array(values, dtype=np.float64)
    times = [place for place, metric in enumerate(METRICS.values()) if metric.unit == "s"]
    table[:, [3 + place for place in times]] *= seconds_per_tick
    return _Spans(int(width), np.array(numbers, dtype=np.int64), table)


def _rows(phase: str, ranks: list[list[_Spans]]) -> Iterable[tuple[str, int, int, int, int, str, float, float]]:
    width = max(spans.width for threads in ranks for spans in threads)
    merged = [_of_rank([spans.widened(width) for spans in threads]) for threads in ranks]
    for place in range(max(len(spans.values) for spans in merged)):
        there = [spans for spans in merged if place < len(spans.values)]
        first = min(int(spans.numbers[place, 0]) for spans in there)
        last = max(int(spans.numbers[place, 1]) for spans in there)
        values = np.array([spans.values[place] for spans in there])
        count = int(values[:, 0].max())
        head = (phase, first, last, count, len(there))
        seconds = values[:, 2] / values[:, 0]
        if not np.isnan(seconds).all():
            yield (*head, "time", float(np.nanmean(seconds)), float(np.nanmax(seconds)))
        known = values[values[:, 1] > 0]
        for number, metric in enumerate(METRICS):
            each = known[:, 3 + number] / known[:, 1] if len(known) else np.zeros(0)
            if each.any() and not np.isnan(each).any():
                yield (*head, metric, float(each.mean()), float(each.max()))


def _of_rank(threads: list[_Spans]) -> _Spans:
    longest = max(threads, key=lambda spans: len(spans.values))
    values = longest.values.copy()
    for other in threads:
        if other is longest:
            continue
        there = len(other.values)
        values[:there, :3] = np.maximum(values[:there, :3], other.values[:, :3])
        values[:there, 3:] += other.values[:, 3:]
    return _Spans(longest.width, longest.numbers, values)
