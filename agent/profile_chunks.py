"""Chunks of raw profiles: reads the used part of each, whatever the file claims."""

from __future__ import annotations

import os
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
        ("reserved", "<u4"),
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


@dataclass(frozen=True)
class Chunk:
    """The filled bytes of a chunk. address: where the first of them was in the memory of the process."""

    location: int
    address: int
    content: bytes


def read_chunks(
    file: BinaryIO, first: int, size: int, chunk_size: int, problems: list[str]
) -> Mapping[ChunkType, list[Chunk]]:
    """Return the chunks of a file of `size` bytes from offset `first` on, by type; unused space is not read."""
    chunks: dict[ChunkType, list[Chunk]] = {kind: [] for kind in ChunkType}
    truncated = oversized = unknown = 0
    room = chunk_size - HEADER_SIZE
    for offset in range(first, size, chunk_size):
        raw = os.pread(file.fileno(), HEADER_SIZE, offset)
        if len(raw) < HEADER_SIZE:
            truncated += 1
            break
        header = np.frombuffer(raw, dtype=CHUNK)[0]
        kind, used = int(header["type"]), int(header["used"])
        if kind == 0:
            continue
        if kind not in _TYPES:
            unknown += 1
            continue
        oversized += used > room
        used = min(used, room)
        content = os.pread(file.fileno(), min(used, max(0, size - offset - HEADER_SIZE)), offset + HEADER_SIZE)
        truncated += len(content) < used
        address = int(header["address"]) + HEADER_SIZE
        chunks[ChunkType(kind)].append(Chunk(int(header["location"]), address, content))
    if truncated:
        problems.append("the file is truncated: what follows its end is lost")
    if oversized:
        problems.append(f"{oversized} chunks claim more bytes than a chunk holds")
    if unknown:
        problems.append(f"{unknown} chunks are of an unknown type and were left out")
    return chunks
