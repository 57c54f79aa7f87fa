# SPDX-License-Identifier: Apache-2.0
"""Read the text format of Extra-P: lines that begin with PARAMETER, POINTS, METRIC, REGION or DATA."""

from __future__ import annotations

import re

from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Experiment

from .collect import DEFAULT_METRIC, Collector, number

KEYWORDS = ("PARAMETER", "POINTS", "METRIC", "REGION", "DATA")
_GROUP = re.compile(r"\(([^()]*)\)")


def parse_text(text: str, source: object, name: str) -> Experiment:
    """Return the experiment in an Extra-P text.

    POINTS are `4 8 16`, or `( 4 10 ) ( 8 10 )` for several parameters. A DATA line has the repetitions at one point;
    the DATA lines are in the order of the points. Lines that begin with # are comments. Raises FormatError with the
    invalid line. source: file name for errors. name: of the experiment.
    """
    parser = _Parser(source)
    for count, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            parser.line = count
            parser.take(words[0], " ".join(words[1:]))
    return parser.finish(name)


class _Parser:
    def __init__(self, source: object) -> None:
        self.source = source
        self.line = 0
        self.names: list[str] = []
        self.collector: Collector | None = None
        self.points: list[int] = []
        self.metric = DEFAULT_METRIC
        self.region = ""
        self.taken = 0

    def error(self, message: str) -> FormatError:
        return FormatError(self.source, message, self.line)

    def take(self, keyword: str, value: str) -> None:
        if keyword not in KEYWORDS:
            raise self.error(f"{keyword[:40]!r} is not a keyword of Extra-P text: use one of {', '.join(KEYWORDS)}")
        if not value:
            raise self.error(f"{keyword} without anything after it")
        if keyword == "PARAMETER":
            if self.collector is not None:
                raise self.error("PARAMETER after POINTS: name all parameters first")
            self.names.extend(value.split())
        elif keyword == "POINTS":
            self._points(value)
        elif keyword == "DATA":
            self._data(value)
        else:
            self._all_taken()
            if keyword == "METRIC":
                self.metric = value
            else:
                self.region = value

    def _points(self, value: str) -> None:
        if not self.names:
            raise self.error("POINTS before any PARAMETER: write PARAMETER p first")
        self._all_taken()
        if self.collector is None:
            self.collector = Collector(self.source, self.names, self.line)
        groups = [group.replace(",", " ").split() for group in _GROUP.findall(value)]
        if "(" in value or ")" in value:
            if _GROUP.sub("", value).replace(",", " ").strip():
                raise self.error("POINTS with numbers outside of parentheses: write ( 4 10 ) ( 8 10 )")
        elif len(self.names) > 1:
            raise self.error("POINTS of several parameters need parentheses: write ( 4 10 ) ( 8 10 )")
        else:
            groups = [[word] for word in value.split()]
        for group in groups:
            self.points.append(self.collector.point([self._number(word) for word in group], "POINTS", self.line))

    def _data(self, value: str) -> None:
        if self.collector is None:
            raise self.error("DATA before POINTS: write PARAMETER and POINTS first")
        if self.taken == len(self.points):
            raise self.error(
                f"{self._where()} has more DATA lines than the {len(self.points)} points: remove the others"
            )
        values = [self._number(word) for word in value.split()]
        self.collector.add(self.region, self.metric, self.points[self.taken], values)
        self.taken += 1

    def _number(self, word: str) -> float:
        try:
            return number(float(word), self.source, "DATA", self.line)
        except ValueError:
            raise self.error(f"{word[:40]!r} is not a number") from None

    def _all_taken(self) -> None:
        """Raise FormatError if some points have no DATA line: only the order assigns DATA lines to points."""
        if 0 < self.taken < len(self.points):
            raise self.error(
                f"{self._where()} has {self.taken} DATA lines for {len(self.points)} points: add the missing lines "
                "before this one (DATA nan if not measured)"
            )
        self.taken = 0

    def _where(self) -> str:
        return f"metric {self.metric} of region {self.region}" if self.region else f"metric {self.metric}"

    def finish(self, name: str) -> Experiment:
        self._all_taken()
        if self.collector is None:
            raise FormatError(self.source, "contains no measurements: POINTS are missing")
        return self.collector.experiment(name)
