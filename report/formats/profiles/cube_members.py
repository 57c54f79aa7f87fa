# SPDX-License-Identifier: Apache-2.0
"""Check the unpacked sizes of the members of a Cube profile.

pycubexr unpacks each member in one piece. A damaged or malicious file could otherwise exceed the memory limit.
"""

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
_ELEMENT_BYTES = 200  # memory of an XML element in ElementTree and in pycubexr
_NUMBER_BYTES = 5  # largest memory (bytes) per unpacked byte: for numbers of the index; values (float64) need less
_PACKED = b"ZCUBEX.DATA"
_ENTRY = struct.Struct("<qqq")


def count_members(path: Path, cost: Reading) -> None:
    """Count the memory for reading a profile towards the limit `cost`.

    Raises FormatError above the limit and for a compressed file, and errors of `tarfile` for a damaged file.
    """
    with path.open("rb") as file:
        if file.read(2) in (b"\x1f\x8b", b"BZ", b"\xfd7"):  # gzip, bzip2, xz: tarfile would unpack the whole file
            raise FormatError(path, "is compressed as a whole: decompress it first")
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
    """Count the values of a metric: number of compressed pieces, an entry with the size of each, then the pieces.

    Both byte orders are possible. The number of pieces, read in the wrong byte order, is larger than 2^32.
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
