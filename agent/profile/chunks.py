"""Chunks of raw profiles: reads the used part of each, whatever the file claims, and checks it where it is sealed."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import BinaryIO

import numpy as np

HEADER_SIZE = 64
LARGEST = 1 << 28
CHUNK = np.dtype(
    [
        ("type", "<u4"),
        ("location", "<u4"),
        ("used", "<u4"),
        ("crc", "<u4"),
        ("address", "<u8"),
        ("unused", "<u4", (10,)),
    ]
)


class ChunkType(IntEnum):
    """What a chunk holds: `enum quipu_chunk_type`."""

    NODES = 1
    TEXT = 2
    COUNTERS = 3
    WEIGHTS = 4
    THREADS = 5


_TYPES = frozenset(ChunkType)
_CRC_AT, _CRC_SIZE = 12, 4


@dataclass(frozen=True)
class Seal:
    """A file that was sealed when its process ended: every chunk has a checksum. chunks: how many there should be."""

    chunks: int


@dataclass(frozen=True)
class Chunk:
    """The filled bytes of a chunk. address: where the first of them was in the memory of the process."""

    location: int
    address: int
    content: bytes


def is_intact(content: bytes, crc_at: int) -> bool:
    """Whether the checksum in these bytes fits: CRC-32 of them with the checksum itself as 0; 0 is stored as 1."""
    stored = int.from_bytes(content[crc_at : crc_at + _CRC_SIZE], "little")
    found = zlib.crc32(content[:crc_at])
    found = zlib.crc32(bytes(_CRC_SIZE), found)
    return stored == (zlib.crc32(memoryview(content)[crc_at + _CRC_SIZE :], found) or 1)


@dataclass
class _Damage:
    """How many chunks have which defect."""

    truncated: int = 0
    oversized: int = 0
    unknown: int = 0
    changed: int = 0
    changed_text: int = 0

    def texts(self) -> list[str]:
        """Return the defects in words."""
        left_out = "do not fit their checksums: they are damaged and were left out"
        named = {
            "the file is truncated: what follows its end is lost": self.truncated,
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
    """Return the chunks of a file of `size` bytes from offset `first` on, by type; unused space is not read.

    wanted: types that are read; others are passed over, unchecked. None: all.
    """
    chunks: dict[ChunkType, list[Chunk]] = {kind: [] for kind in ChunkType}
    damage = _Damage()
    count = 0
    for offset in range(first, size, chunk_size):
        raw = os.pread(file.fileno(), HEADER_SIZE, offset)
        if len(raw) < HEADER_SIZE:
            damage.truncated += 1
            break
        count += 1
        header = np.frombuffer(raw, dtype=CHUNK)[0]
        kind, used = int(header["type"]), int(header["used"])
        if wanted is not None and kind in _TYPES - wanted:
            continue
        room = chunk_size - HEADER_SIZE
        content = os.pread(file.fileno(), min(used, room, max(0, size - offset - HEADER_SIZE)), offset + HEADER_SIZE)
        truncated = len(content) < min(used, room)
        if seal is not None and not truncated and not is_intact(raw + content, _CRC_AT):
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
        address = int(header["address"]) + HEADER_SIZE
        chunks[ChunkType(kind)].append(Chunk(int(header["location"]), address, content))
    if seal is not None and count < seal.chunks:
        damage.truncated += 1
    problems.extend(damage.texts())
    return chunks
