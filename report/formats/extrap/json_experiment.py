# SPDX-License-Identifier: Apache-2.0
"""Read Extra-P JSON: an object with parameters and measurements, in the current form or the older numbered form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quipu.modeling.documents import json_of
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Experiment

from .collect import Collector, repetitions, text_of
from .json_numbered import collect_numbered

_KEYS = frozenset(("parameters", "measurements", "callpaths"))
_FORM = 'Extra-P JSON is {"parameters": [...], "measurements": ...}'
_CALIPER = "Quipu reads Caliper's own format: write it with output.format=cali"


def parse_json(text: str, source: object, name: str) -> Experiment:
    """Return the experiment in an Extra-P JSON text.

    The current form is {"parameters": ["p"], "measurements": {"main->foo": {"time": [{"point": [4],
    "values": [1.0, 1.1]}]}}}. For the older form see `collect_numbered`. Raises FormatError with the invalid entry.
    source: file name for errors. name: of the experiment.
    """
    content = json_of(text, source)
    if not isinstance(content, dict):
        raise FormatError(source, f"is JSON, but not an object. {_FORM}")
    if not _KEYS.intersection(content):
        raise FormatError(
            source, f"is JSON, but not an Extra-P experiment. {_CALIPER if 'nodes' in content else _FORM}"
        )
    collector = collect_numbered(content, source) if "callpaths" in content else _collect(content, source)
    return collector.experiment(name)


def _collect(content: dict[str, Any], source: object) -> Collector:
    collector = Collector(source, parameter_names(content, source))
    measurements = content.get("measurements")
    if not isinstance(measurements, dict):
        raise FormatError(source, '"measurements" is missing or not an object {"call path": {"metric": [...]}}')
    for callpath, metric, what, entry in entries_of(measurements, source):
        if not isinstance(entry, dict) or "point" not in entry or "values" not in entry:
            raise FormatError(source, f'{what}: is not {{"point": [...], "values": [...]}}')
        values = repetitions(entry["values"], source, what)
        collector.add(callpath, metric, collector.point(entry["point"], what), values)
    return collector


def parameter_names(content: dict[str, Any], source: object) -> list[str]:
    """Return the names in the entry "parameters". Raises FormatError if it is missing or not a list of names."""
    names = content.get("parameters")
    if not isinstance(names, list):
        raise FormatError(source, '"parameters" is missing or not a list of names, such as ["p", "n"]')
    return [text_of(name, source, '"parameters"') for name in names]


def entries_of(measurements: dict[str, Any], source: object) -> Iterator[tuple[str, str, str, Any]]:
    """Yield call path, metric, a name of the entry for error messages, and the unchecked entry.

    Raises FormatError if the nesting of objects and lists is wrong.
    """
    for callpath, metrics in measurements.items():
        if not isinstance(metrics, dict):
            raise FormatError(source, f'{callpath}: is not {{"metric": [...]}}')
        for metric, entries in metrics.items():
            if not isinstance(entries, list):
                raise FormatError(source, f"{callpath}, {metric}: is not a list of measurements")
            for count, entry in enumerate(entries, start=1):
                yield callpath, metric, f"{callpath}, {metric}, entry {count}", entry
