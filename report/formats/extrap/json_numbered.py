# SPDX-License-Identifier: Apache-2.0
"""Read the older form of Extra-P JSON.

Its measurements refer to the entries of lists of parameters, call paths, metrics and coordinates by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from quipu.modeling.errors import FormatError

from .collect import Collector, number, text_of

Chosen = TypeVar("Chosen")
_KINDS = ("parameters", "callpaths", "metrics", "coordinates", "measurements")


def collect_numbered(content: dict[str, Any], source: object) -> Collector:
    """Return the measurements in the older form of Extra-P JSON.

    The entries of "parameters", "callpaths", "metrics" and "coordinates" have an "id". As in Extra-P, a measurement
    refers to an entry by its position in the order of these ids, from 1. Values of the same call path, metric and
    coordinate are repetitions. Raises FormatError with the invalid entry.
    """
    tables = {kind: _entries(content, kind, source) for kind in _KINDS[:-1]}
    measurements = _entries(content, _KINDS[-1], source, ordered=False)
    names = {
        kind: [text_of(entry.get("name"), source, f'"name" in "{kind}"') for entry in tables[kind]]
        for kind in _KINDS[:3]
    }
    collector = Collector(source, names["parameters"])
    points = [_point(entry, collector, source) for entry in tables["coordinates"]]
    for count, entry in enumerate(measurements, start=1):
        what = f"measurement {count}"
        path = _chosen(entry, "callpath_id", names["callpaths"], what, source)
        metric = _chosen(entry, "metric_id", names["metrics"], what, source)
        point = _chosen(entry, "coordinate_id", points, what, source)
        collector.add(path, metric, point, [_number(entry, "value", what, source)])
    return collector


def _entries(content: dict[str, Any], kind: str, source: object, ordered: bool = True) -> list[dict[str, Any]]:
    """Return the list `kind`, sorted by "id" if `ordered`. Raises FormatError if it is not a list of objects."""
    entries = content.get(kind)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise FormatError(source, f'"{kind}" is missing or not a list of objects; a file with "callpaths" needs it')
    return sorted(entries, key=lambda entry: _whole(entry, "id", kind, source)) if ordered else entries


def _point(entry: dict[str, Any], collector: Collector, source: object) -> int:
    pairs = entry.get("parameter_value_pairs")
    what = f"coordinate {entry.get('id')}"
    if not isinstance(pairs, list) or not all(isinstance(pair, dict) for pair in pairs):
        raise FormatError(source, f'{what}: "parameter_value_pairs" is missing or not a list of objects')
    ordered = sorted(pairs, key=lambda pair: _whole(pair, "parameter_id", what, source))
    return collector.point([_number(pair, "parameter_value", what, source) for pair in ordered], what)


def _number(entry: dict[str, Any], key: str, what: str, source: object) -> float:
    """Return a number of an entry. As in Extra-P, the number may be given as text. Raises FormatError."""
    value = entry.get(key)
    if isinstance(value, str):
        text = value
        try:
            value = float(text)
        except ValueError:
            raise FormatError(source, f'{what}: "{key}" {text[:40]!r} is not a number') from None
    if key not in entry:
        raise FormatError(source, f'{what}: "{key}" is missing')
    return number(value, source, f'{what}: "{key}"')


def _whole(entry: dict[str, Any], key: str, what: str, source: object) -> int:
    value = _number(entry, key, what, source)
    if not value.is_integer():
        raise FormatError(source, f'{what}: "{key}" is not a whole number')
    return int(value)


def _chosen(entry: dict[str, Any], key: str, known: Sequence[Chosen], what: str, source: object) -> Chosen:
    """Return the element of `known` to which an entry refers by number. Raises FormatError if there is none."""
    place = _whole(entry, key, what, source)
    if not 1 <= place <= len(known):
        raise FormatError(source, f'{what}: "{key}" is {place}, but there are {len(known)} entries (numbered from 1)')
    return known[place - 1]
