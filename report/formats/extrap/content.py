"""The bytes and text of a file from somebody else, within limits; gzip is taken away."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from quipu.modeling.errors import FormatError

LARGEST = 1 << 30
"""More bytes than this, uncompressed, are refused."""
_RATIO_COUNTS_FROM = 64 << 20
_LARGEST_RATIO = 200
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20


def read_content(path: Path) -> bytes:
    """Return the bytes of a file, decompressed if it is a gzip file.

    Raises FormatError if it cannot be read, is damaged, or holds more than `LARGEST` bytes.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise FormatError(path, f"is larger than {LARGEST >> 20} MiB: split it by call paths or metrics")
        raw = path.read_bytes()
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
    return _decompressed(raw, path) if raw.startswith(_GZIP) else raw


def check_expansion(source: object, size: int, compressed: int) -> None:
    """Raise FormatError if compressed content is too large, or expands as no measurements do."""
    if size > LARGEST:
        raise FormatError(source, f"holds more than {LARGEST >> 20} MiB: split it by call paths or metrics")
    if size > _RATIO_COUNTS_FROM and size > _LARGEST_RATIO * compressed:
        raise FormatError(source, f"expands to more than {_LARGEST_RATIO} times its size: no file of measurements does")


def _decompressed(raw: bytes, path: Path) -> bytes:
    parts: list[bytes] = []
    total = 0
    rest = raw
    try:
        while rest.startswith(_GZIP):  # a gzip file may have several members
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                part = member.decompress(rest, _CHUNK)
                if not part and not member.unconsumed_tail and not member.eof:
                    raise FormatError(path, "is a gzip file that ends early: copy it again")
                total += len(part)
                check_expansion(path, total, len(raw))
                parts.append(part)
                rest = member.unconsumed_tail
            rest = member.unused_data
    except zlib.error as error:
        raise FormatError(path, f"is a damaged gzip file: {error}") from error
    return b"".join(parts)


def decode(content: bytes, source: object) -> str:
    """Return text from UTF-8, without a byte order mark; FormatError names the line that is something else."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FormatError(source, "is not UTF-8 text: save it as UTF-8", line) from error


def load_json(text: str, source: object, line: int | None = None) -> Any:
    """Return what a JSON text says. FormatError names the line: `line`, or else the one inside of the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = error.lineno if line is None else line
        raise FormatError(source, f"is no JSON (cut off?): {error.msg} at column {error.colno}", where) from error
    except RecursionError as error:
        raise FormatError(source, "is JSON that is nested too deep to be measurements", line) from error
    except ValueError as error:  # an integer with thousands of digits
        raise FormatError(source, "holds a number with too many digits", line) from error
