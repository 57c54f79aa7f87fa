"""Extra-P JSON Lines: one measurement per line."""

from __future__ import annotations

from typing import Any

from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Experiment

from .collect import DEFAULT_CALLPATH, DEFAULT_METRIC, Collector, repetitions, text_of
from .content import load_json


def parse_json_lines(text: str, source: object, name: str) -> Experiment:
    """Return the experiment in an Extra-P JSON Lines text.

    A line is {"params": {"p": 4}, "callpath": "main->foo", "metric": "time", "value": [1.0, 1.1]}; call path and
    metric may be missing. Lines of the same point are repetitions. Raises FormatError naming the line at fault.
    """
    lines = LineCollector(source, "params")
    for count, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            lines.add(load_json(line, source, count), count)
    return lines.experiment(name)


class LineCollector:
    """Takes the object of one line after the other; `parameters` is the key of its parameter values."""

    def __init__(self, source: object, parameters: str) -> None:
        self.source = source
        self.key = parameters
        self.names: list[str] = []
        self.collector: Collector | None = None

    def add(self, record: Any, line: int) -> None:
        """Add the measurement of a line; FormatError names the line."""
        if not isinstance(record, dict):
            raise FormatError(self.source, "is no object {...} with a measurement", line)
        values = record.get(self.key)
        if not isinstance(values, dict):
            raise FormatError(self.source, f'"{self.key}" is missing or no object such as {{"p": 4}}', line)
        if self.collector is None:
            self.names = list(values)
            self.collector = Collector(self.source, self.names, line)
        if values.keys() != set(self.names):
            raise FormatError(
                self.source,
                f"the parameters are {', '.join(values) or 'missing'}, but {', '.join(self.names)} in the first line",
                line,
            )
        if "value" not in record:
            raise FormatError(self.source, '"value" is missing', line)
        callpath = text_of(record.get("callpath", DEFAULT_CALLPATH), self.source, '"callpath"', line)
        metric = text_of(record.get("metric", DEFAULT_METRIC), self.source, '"metric"', line)
        point = self.collector.point([values[name] for name in self.names], f'"{self.key}"', line)
        self.collector.add(callpath, metric, point, repetitions(record["value"], self.source, '"value"', line))

    def experiment(self, name: str) -> Experiment:
        """Return all measurements; FormatError if there are none."""
        if self.collector is None:
            raise FormatError(self.source, "holds no measurements")
        return self.collector.experiment(name)
