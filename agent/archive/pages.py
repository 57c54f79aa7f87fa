# SPDX-License-Identifier: Apache-2.0
"""Compute the uncompressed size of a Parquet file from the headers of its pages, before it is decompressed.

The sizes in the footer of the file may be wrong, so that they do not protect against files that need too much memory.
The headers are structures of Thrift's compact protocol (https://github.com/apache/parquet-format, parquet.thrift).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, BinaryIO

from quipu.modeling.limits import Reading

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = frozenset((_I16, _I32, _I64))
# Numbers of fields in a page header: uncompressed size, compressed size, and the three special headers (of data pages,
# dictionary pages, and data pages of version 2). _KINDS: special header → number of its field with the encoding.
_UNPACKED, _PACKED, _KINDS = 2, 3, {5: 2, 7: 2, 8: 4}
# PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY. With other encodings, values may need more memory than the
# uncompressed size in the header.
_ENCODINGS = frozenset((0, 2, 3, 4, 8))
_LONGEST_HEADER = 1 << 16
_DEEPEST = 8


def count_pages(file: BinaryIO, metadata: Any, columns: Collection[str], cost: Reading) -> None:
    """Add the uncompressed size (bytes) of the pages of some columns to a cost.

    metadata: the footer as read by pyarrow. Raises ValueError for a page that is not safe to decompress, IndexError for
    a truncated header, and the error of `cost` if the limit is exceeded.
    """
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for number in range(row_group.num_columns):
            column = row_group.column(number)
            if column.path_in_schema in columns:
                offsets = [column.data_page_offset, column.dictionary_page_offset]
                begin = min(offset for offset in offsets if offset)
                _count_column(file, begin, begin + column.total_compressed_size, cost)


def _count_column(file: BinaryIO, begin: int, end: int, cost: Reading) -> None:
    while begin < end:
        file.seek(begin)
        header = _Header(file.read(_LONGEST_HEADER))
        fields = header.struct()
        of_kind = [(fields[kind], place) for kind, place in _KINDS.items() if kind in fields]
        unpacked, packed = fields.get(_UNPACKED), fields.get(_PACKED)
        if not isinstance(unpacked, int) or not isinstance(packed, int) or min(unpacked, packed) < 0:
            raise ValueError("a page of no size")
        if not all(isinstance(kind, dict) and kind.get(place) in _ENCODINGS for kind, place in of_kind):
            raise ValueError("a page in an encoding without an unpacked size")
        cost.spend(unpacked)
        cost.check_time()
        begin += header.place + packed


class _Header:
    """A reader of a Thrift structure at the beginning of some bytes.

    place: index of the next byte to read. Raises IndexError if bytes are missing, ValueError for an invalid structure.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the fields by number. Values are integers and structures (dicts); None for fields of other types."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while (byte := self._byte()) != 0:
            kind = byte & 15
            number = number + (byte >> 4) if byte >> 4 else self._integer()
            fields[number] = self._value(kind, depth)
        return fields

    def _byte(self) -> int:
        self.place += 1
        return self.content[self.place - 1]

    def _unsigned(self) -> int:
        value, shift = 0, 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise ValueError("an integer that is too long")
        return value | byte << shift

    def _integer(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_TRUE, _FALSE):
            return None
        if kind == _BINARY:
            length = self._unsigned()
            self.place += length
        elif kind in (_BYTE, _DOUBLE):
            self.place += 1 if kind == _BYTE else 8
        else:
            raise ValueError("an unknown type in the header of a page")
        return None
