# SPDX-License-Identifier: Apache-2.0
"""Read Extra-P JSON Lines and Talpas: one measurement per line. Talpas has semicolons instead of the commas of JSON."""

from __future__ import annotations

import re
from collections.abc import Callable

from quipu.modeling.documents import json_of
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Experiment

from .collect import DEFAULT_CALLPATH, DEFAULT_METRIC, Collector, repetitions, text_of

# The pattern matches whole strings, so that semicolons in names are not replaced. A string without an end extends to
# the end of the line.
_STRING_OR_SEMICOLON = re.compile(r'"(?:[^"\\]|\\.)*+"?|;')


def parse_json_lines(text: str, source: object, name: str) -> Experiment:
    """Return the experiment in an Extra-P JSON Lines text.

    A line is {"params": {"p": 4}, "callpath": "main->foo", "metric": "time", "value": [1.0, 1.1]}. The call path and
    the metric may be missing. Lines with the same parameters, call path and metric are repetitions. Raises FormatError
    with the invalid line. source: file name for errors. name: of the experiment.
    """
    return _experiment(text, "params", str, source, name)


def parse_talpas(text: str, source: object, name: str) -> Experiment:
    """Return the experiment in a Talpas text.

    A line is {"parameters":{"p":4};"metric":"time";"callpath":"main->foo";"value":1.0}. Repetitions, missing names,
    arguments and errors are the same as in `parse_json_lines`.
    """
    return _experiment(text, "parameters", as_json, source, name)


def as_json(line: str) -> str:
    """Return a line of Talpas with commas instead of semicolons, except in strings."""
    return _STRING_OR_SEMICOLON.sub(lambda match: "," if match[0] == ";" else match[0], line)


def _experiment(text: str, key: str, spelled: Callable[[str], str], source: object, name: str) -> Experiment:
    """Return the measurements in all lines. key: key of the parameter values. spelled: converts a line to JSON."""
    names: list[str] = []
    collector: Collector | None = None
    for count, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        record = json_of(spelled(line), source, count)
        if not isinstance(record, dict):
            raise FormatError(source, "is not an object {...} with a measurement", count)
        values = record.get(key)
        if not isinstance(values, dict):
            raise FormatError(source, f'"{key}" is missing or not an object such as {{"p": 4}}', count)
        if collector is None:
            names = list(values)
            collector = Collector(source, names, count)
        if values.keys() != set(names):
            found = f"the parameters are {', '.join(values) or 'missing'}, but {', '.join(names)} in the first line"
            raise FormatError(source, found, count)
        if "value" not in record:
            raise FormatError(source, '"value" is missing', count)
        callpath = text_of(record.get("callpath", DEFAULT_CALLPATH), source, '"callpath"', count)
        metric = text_of(record.get("metric", DEFAULT_METRIC), source, '"metric"', count)
        point = collector.point([values[parameter] for parameter in names], f'"{key}"', count)
        collector.add(callpath, metric, point, repetitions(record["value"], source, '"value"', count))
    if collector is None:
        raise FormatError(source, "contains no measurements")
    return collector.experiment(name)
