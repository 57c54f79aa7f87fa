# SPDX-License-Identifier: Apache-2.0
"""What the members of a Cube profile unpack to: counted before pycubexr unpacks them in one piece each."""

from __future__ import annotations

import gzip
import struct
import tarfile
import zlib
from pathlib import Path
from typing import IO

from quipu.modeling.errors import FormatError
from quipu.modeling.limits import Reading

_CHUNK = 1 << 20
_ELEMENT_BYTES = 200  # of an element of ElementTree and the object that pycubexr makes of it
_NUMBER_BYTES = 5  # of a number of the index in memory, by its bytes in the file; of values as float64 the same at most
_PACKED = b"ZCUBEX.DATA"
_ENTRY = struct.Struct("<qqq")


def count_members(path: Path, cost: Reading) -> None:
    """Count what reading a profile will take. Raises FormatError if it is too much, and what `tarfile` raises."""
    with path.open("rb") as file:
        if file.read(2) in (b"\x1f\x8b", b"BZ", b"\xfd7"):  # which tarfile would unpack to find out what is in it
            raise FormatError(path, "is packed as a whole: unpack it first")
    with tarfile.open(path, "r:") as archive:
        for member in archive:
            cost.check_time()
            content = archive.extractfile(member)
            if content is None:
                continue
            if member.name == "anchor.xml":
                with gzip.GzipFile(fileobj=content) if content.read(2) == b"\x1f\x8b" else content as text:
                    content.seek(0)
                    _count(text, cost, _ELEMENT_BYTES)
            elif content.read(len(_PACKED)) == _PACKED:
                _count_packed(content, cost)
            else:
                cost.spend(_NUMBER_BYTES * member.size)


def _count(content: IO[bytes] | gzip.GzipFile, cost: Reading, element: int) -> None:
    while piece := content.read(_CHUNK):
        cost.spend(len(piece) + element * piece.count(b"<"))
        cost.check_time()


def _count_packed(content: IO[bytes], cost: Reading) -> None:
    """Count the values of a metric: the number of pieces, the place and size of each, then the pieces.

    Either byte order occurs; a number of pieces in the wrong one is larger than 2^32.
    """
    raw = content.read(8)
    order = "<" if len(raw) == 8 and raw[4:] == bytes(4) else ">"
    (count,) = struct.unpack(order + "q", raw)
    sizes = []
    for _ in range(count):
        entry = content.read(_ENTRY.size)
        cost.spend(4 * _ENTRY.size)
        sizes.append(struct.unpack(order + "qqq", entry)[2])
    for size in sizes:
        piece = zlib.decompressobj()
        packed = content.read(max(size, 0))
        while packed and not piece.eof:
            unpacked = piece.decompress(packed, _CHUNK)
            cost.spend(_NUMBER_BYTES * len(unpacked))
            cost.check_time()
            if not unpacked and not piece.unconsumed_tail:
                break
            packed = piece.unconsumed_tail
