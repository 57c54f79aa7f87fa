# SPDX-License-Identifier: Apache-2.0
"""Read the chunks of raw profiles: the used part of each chunk, checked by its checksum if the file is sealed.

The runtime seals a file at the regular end of its process. Unused chunks are holes in the file.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import BinaryIO

import numpy as np
from quipu.modeling.limits import current

from ..layout import LAYOUT

LARGEST = 1 << 28  # bytes of a chunk
_CHUNK = np.dtype(LAYOUT.record("profile_chunk"))


class ChunkType(IntEnum):
    """The content of a chunk: `enum quipu_chunk_type`."""

    NODES = LAYOUT.numbers["CHUNK_NODES"]
    TEXT = LAYOUT.numbers["CHUNK_TEXT"]
    COUNTERS = LAYOUT.numbers["CHUNK_COUNTERS"]
    WEIGHTS = LAYOUT.numbers["CHUNK_WEIGHTS"]
    THREADS = LAYOUT.numbers["CHUNK_THREADS"]
    ADDRESSES = LAYOUT.numbers["CHUNK_ADDRESSES"]


_TYPES = frozenset(ChunkType)


@dataclass(frozen=True)
class Seal:
    """The seal of a file: its process ended regularly, and every chunk has a checksum. chunks: number of chunks."""

    chunks: int


@dataclass(frozen=True)
class Chunk:
    """The used bytes of a chunk.

    location: number of the thread that wrote the chunk. address: address of the first byte in the memory of this
    process.
    """

    location: int
    address: int
    content: bytes


def is_intact(head: bytes, record: np.dtype[np.void], content: bytes = b"") -> bool:
    """Return whether the field `crc` of a record is the checksum of the record and its content (see profile.def).

    head: bytes that begin with the record. record: the type of the record. content: bytes that follow the record.
    """
    kind, begin = record.fields["crc"][:2] if record.fields else (record, 0)
    end = begin + kind.itemsize
    found = zlib.crc32(head[end:], zlib.crc32(bytes(kind.itemsize), zlib.crc32(head[:begin])))
    return int.from_bytes(head[begin:end], "little") == (zlib.crc32(content, found) or 1)


@dataclass
class _Damage:
    """The number of chunks with each kind of defect. changed: the checksum is wrong; changed_text: in a text chunk."""

    truncated: int = 0
    oversized: int = 0
    unknown: int = 0
    changed: int = 0
    changed_text: int = 0

    def texts(self) -> list[str]:
        """Return a text for each defect."""
        left_out = "do not fit their checksums: they are damaged and were left out"
        named = {
            "the file is truncated: the data after its end are lost": self.truncated,
            f"{self.oversized} chunks claim more bytes than a chunk holds": self.oversized,
            f"{self.unknown} chunks are of an unknown type and were left out": self.unknown,
            f"{self.changed} chunks of call paths or counters {left_out}": self.changed,
            f"{self.changed_text} chunks of text do not fit their checksums: names may be wrong": self.changed_text,
        }
        return [text for text, count in named.items() if count]


def read_chunks(
    file: BinaryIO,
    first: int,
    size: int,
    chunk_size: int,
    seal: Seal | None,
    problems: list[str],
    wanted: frozenset[ChunkType] | None = None,
) -> Mapping[ChunkType, list[Chunk]]:
    """Return the chunks of a file by type. Unused space is not read.

    first, size: offset of the first chunk and size of the file (bytes). chunk_size: bytes of each chunk. seal: None if
    the process was killed, so that there are no checksums. problems: receives a text about each kind of defect. wanted:
    types to read; None: all. Chunks of other types are skipped without a check.
    """
    chunks: dict[ChunkType, list[Chunk]] = {kind: [] for kind in ChunkType}
    damage = _Damage()
    whole = max(0, size - first) // chunk_size + (max(0, size - first) % chunk_size >= _CHUNK.itemsize)
    damage.truncated += 0 < max(0, size - first) % chunk_size < _CHUNK.itemsize
    filled = 0
    cost = current()
    for offset in _filled_chunks(file.fileno(), first, size, chunk_size):
        raw = os.pread(file.fileno(), _CHUNK.itemsize, offset)
        if len(raw) < _CHUNK.itemsize:
            break
        filled += 1
        cost.check_time()
        header = np.frombuffer(raw, dtype=_CHUNK)[0]
        kind, used = int(header["type"]), int(header["used"])
        if wanted is not None and kind in _TYPES - wanted:
            continue
        begin, room = offset + _CHUNK.itemsize, chunk_size - _CHUNK.itemsize
        cost.spend(min(used, room, max(0, size - begin)))
        content = os.pread(file.fileno(), min(used, room, max(0, size - begin)), begin)
        truncated = len(content) < min(used, room)
        if seal is not None and not truncated and not is_intact(raw, _CHUNK, content):
            damage.changed_text += kind == ChunkType.TEXT
            damage.changed += kind != ChunkType.TEXT
            if kind != ChunkType.TEXT:
                continue
        if kind == 0:
            continue
        if kind not in _TYPES:
            damage.unknown += 1
            continue
        damage.truncated += truncated
        damage.oversized += used > room
        address = int(header["address"]) + _CHUNK.itemsize
        chunks[ChunkType(kind)].append(Chunk(int(header["location"]), address, content))
    if seal is not None:
        damage.truncated += whole < seal.chunks
        damage.changed += whole - filled  # no chunk of a sealed file is a hole, so missing ones were overwritten
    problems.extend(damage.texts())
    return chunks


def filled_bytes(descriptor: int) -> int:
    """Return the number of bytes of a file that are not in holes."""
    return sum(end - begin for begin, end in _filled(descriptor, 0, os.fstat(descriptor).st_size))


def _filled(descriptor: int, begin: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end (bytes) of the parts of a file, from `begin` on, that are not holes."""
    while begin < size:
        try:
            begin = os.lseek(descriptor, begin, os.SEEK_DATA)
        except OSError:  # only a hole follows
            return
        end = min(size, os.lseek(descriptor, begin, os.SEEK_HOLE))
        yield begin, end
        begin = end


def _filled_chunks(descriptor: int, first: int, size: int, chunk_size: int) -> Iterator[int]:
    """Yield the offsets of the chunks that are not holes.

    The function visits no hole, because an invalid file may have billions of chunks in holes.
    """
    following = first
    for begin, end in _filled(descriptor, first, size):
        start = max(following, begin - (begin - first) % chunk_size)
        for following in range(start + chunk_size, end + chunk_size, chunk_size):
            yield following - chunk_size
