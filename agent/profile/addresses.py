# SPDX-License-Identifier: Apache-2.0
"""The code addresses of samples in raw profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import Metric

from ..layout import LAYOUT
from .chunks import Chunk

_RECORD = LAYOUT.record("profile_address")
_PLACE = ~np.uint64(15)
_CODE = "code:"
_LARGEST = 1 << 63


@dataclass(frozen=True)
class Code:
    """A program or library in memory: its load address, and the begin and end of its code."""

    path: str
    load: int
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class SampledAddresses:
    """Counts of samples by address, rounded to 16 bytes.

    address: uint64 of shape (addresses,). outside: bool (addresses,), whether no region was active. values: uint64
    (addresses, metrics). metrics: names of the metrics of the sampler.
    """

    address: NDArray[np.uint64]
    outside: NDArray[np.bool_]
    values: NDArray[np.uint64]
    metrics: tuple[str, ...]
    code: tuple[Code, ...]


def read_addresses(
    chunks: Sequence[Chunk], metrics: Sequence[Metric], attributes: Mapping[str, str], problems: list[str]
) -> SampledAddresses | None:
    """Return the addresses of a profile; None if it has none.

    The metrics of the sampler are consecutive in the header, beginning with `samples`; metrics of memory and files may
    follow. Each record contains its number of metrics; the number of most records is used.
    """
    names = [metric.name for metric in metrics]
    if not chunks or "samples" not in names:
        return None
    every = tuple(names[names.index("samples") :])
    tried = [(_records(chunks, number), number) for number in range(len(every), 0, -1)]
    records, number = max(tried, key=lambda one: int((one[0]["count"] == one[1]).sum()))
    kept, strange = every[:number], records["count"] != number
    if strange.any():
        problems.append(f"{int(strange.sum())} addresses of samples are damaged and were left out")
    records = records[~strange]
    return SampledAddresses(
        records["address"] & _PLACE,
        (records["address"] & np.uint64(1)).astype(bool),
        records["values"].copy(),
        kept,
        tuple(_code(attributes)),
    )


def _records(chunks: Sequence[Chunk], number: int) -> NDArray[np.void]:
    """Return the used records, interpreted with `number` values each."""
    layout = np.dtype([*_RECORD, ("values", "<u8", (number,))])
    pieces = [np.frombuffer(c.content, dtype=layout, count=len(c.content) // layout.itemsize) for c in chunks]
    records: NDArray[np.void] = np.concatenate([np.zeros(0, dtype=layout), *pieces])
    return np.asarray(records[records["address"] != 0])


def _code(attributes: Mapping[str, str]) -> list[Code]:
    found = []
    for key, text in attributes.items():
        words = text.split()
        if not key.startswith(_CODE) or len(words) != 3:
            continue
        try:
            load, begin, end = (int(word, 16) for word in words)
        except ValueError:
            continue
        if 0 <= load < _LARGEST and 0 <= begin < end < _LARGEST:
            found.append(Code(key.removeprefix(_CODE), load, begin, end))
    return found
