# SPDX-License-Identifier: Apache-2.0
"""Write profiles of pprof: gzip-compressed messages of proto/profile.proto in github.com/google/pprof."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable

from .weighted import WeightedStacks, whole_unit

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING, _COMMENT, _DEFAULT_TYPE = 1, 2, 4, 5, 6, 13, 14


def pprof(stacks: WeightedStacks) -> bytes:
    """Return a profile with one value type per metric. By default, pprof shows the first one. Locations are regions."""
    strings: dict[str, int] = {"": 0}

    def text(value: str) -> int:
        return strings.setdefault(value, len(strings))

    columns = [stacks.weights(metric, stacks.samples[0]) for metric in stacks.metrics]
    parts = [
        _message(_SAMPLE_TYPE, _number(1, text(metric.name)) + _number(2, text(whole_unit(metric) or "count")))
        for metric in stacks.metrics
    ]
    for chain, *values in zip(stacks.chains, *columns, strict=True):
        if any(values):
            frames = _packed(1, (region + 1 for region in reversed(chain)))
            parts.append(_message(_SAMPLE, frames + _packed(2, values)))
    for number, region in enumerate(stacks.tree.regions, start=1):
        parts.append(
            _message(_LOCATION, _number(1, number) + _message(4, _number(1, number) + _number(2, region.line)))
        )
        names = _number(2, text(region.display)) + _number(3, text(region.name)) + _number(4, text(region.file))
        parts.append(_message(_FUNCTION, _number(1, number) + names + _number(5, region.line)))
    parts += [_number(_COMMENT, text(f"quipu: {stacks.title}, {stacks.samples[0].name}"))]
    parts += [_number(_DEFAULT_TYPE, text(stacks.metrics[0].name))]
    parts += [_message(_STRING, value.encode("utf-8", "replace")) for value in strings]
    packed = io.BytesIO()
    with gzip.GzipFile("quipu", "wb", fileobj=packed, mtime=0) as file:
        file.write(b"".join(parts))
    return packed.getvalue()


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _message(field, b"".join(map(_varint, values)))
