# SPDX-License-Identifier: Apache-2.0
"""Decompress and decode the content of a file of another tool."""

from __future__ import annotations

import gzip
import io
import zlib

from quipu.modeling.errors import FormatError
from quipu.modeling.limits import current

_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20


def unpacked(raw: bytes, source: object) -> bytes:
    """Return the bytes of a file, decompressed if it is a gzip file. Raises FormatError if the gzip file is damaged.

    The file is decompressed in pieces, so that the memory limit also ends the decompression of a huge file.
    """
    if not raw.startswith(_GZIP):
        return raw
    parts: list[bytes] = []
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:  # also reads files with several members
            while part := file.read(_CHUNK):
                current().spend(len(part))
                current().check_time()
                parts.append(part)
    except EOFError as error:
        raise FormatError(source, "is a gzip file that ends early: copy it again") from error
    except (OSError, zlib.error) as error:
        raise FormatError(source, f"is a damaged gzip file: {error}") from error
    return b"".join(parts)


def decode(content: bytes, source: object) -> str:
    """Return UTF-8 bytes as text without a byte order mark. Raises FormatError with the line of an invalid byte."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormatError(source, "is not UTF-8 text: save it as UTF-8", line) from error
