# SPDX-License-Identifier: Apache-2.0
"""Read the code addresses of samples from raw profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import Metric

from ..layout import LAYOUT
from .chunks import Chunk

_RECORD = LAYOUT.record("profile_address")
_PLACE = ~np.uint64(15)  # the bits of a record that are the address
_CODE = "code:"  # prefix of the attributes with the addresses of programs and libraries
_LARGEST = 1 << 63  # addresses below this one are valid


@dataclass(frozen=True)
class Code:
    """A program or library in memory: its load address, and the address range of its code (begin <= address < end)."""

    path: str
    load: int
    begin: int
    end: int


@dataclass(frozen=True, eq=False)
class SampledAddresses:
    """Counts of the samples at each code address.

    - address: address, rounded down to a multiple of 16 bytes, shape (addresses,).
    - outside: whether no region was active at the time of the samples, shape (addresses,).
    - values: counts in the unit of each metric, shape (addresses, metrics). metrics: names of the sampled metrics.
    - code: the programs and libraries that contain the addresses.
    """

    address: NDArray[np.uint64]
    outside: NDArray[np.bool_]
    values: NDArray[np.uint64]
    metrics: tuple[str, ...]
    code: tuple[Code, ...]


def read_addresses(
    chunks: Sequence[Chunk], metrics: Sequence[Metric], attributes: Mapping[str, str], problems: list[str]
) -> SampledAddresses | None:
    """Return the sampled addresses of a profile; None if it has none.

    metrics: the metrics of the profile. attributes: its attributes. problems: receives a text about damaged records.

    The sampled metrics follow each other in the header and begin with `samples`. Metrics of memory and files may follow
    them. Each record contains the number of its metrics. The number that most records contain is accepted as valid.
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
    """Return the records that are in use, read with `number` metrics per record."""
    layout = np.dtype([*_RECORD, ("values", "<u8", (number,))])
    pieces = [np.frombuffer(c.content, dtype=layout, count=len(c.content) // layout.itemsize) for c in chunks]
    records: NDArray[np.void] = np.concatenate([np.zeros(0, dtype=layout), *pieces])
    return np.asarray(records[records["address"] != 0])


def _code(attributes: Mapping[str, str]) -> list[Code]:
    """Return the programs and libraries in the attributes `code:PATH`, whose values are three hexadecimal numbers."""
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
