# SPDX-License-Identifier: Apache-2.0
"""Find the names of functions by their addresses, from the symbols of programs and libraries (ELF)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import IntArray
from quipu.modeling.limits import reading, without_waiting
from quipu.mpi_wrap.elf import ElfFile, NoElf, text_at

from ..layout import function_of_symbol

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
"""Elf64_Sym (elf.h)."""
_FUNCTION, _INDIRECT = 2, 10  # STT_FUNC, STT_GNU_IFUNC
_SAME_PLACE = 15  # addresses of samples are rounded down to multiples of 16 bytes, so they may be 15 bytes too low


@dataclass(frozen=True, eq=False)
class Symbols:
    """The functions of a file.

    begin, end: first address and address after the last one, relative to the load address; ascending, shape
    (functions,). names: linker names of the functions.
    """

    begin: NDArray[np.uint64]
    end: NDArray[np.uint64]
    names: tuple[str, ...]

    def find(self, addresses: NDArray[np.uint64]) -> IntArray:
        """Return for each address the index of its function; -1 if there is none.

        addresses: relative to the load address, rounded down to multiples of 16 bytes.
        """
        if not self.names:
            return np.full(addresses.size, -1, dtype=np.int64)
        place = np.searchsorted(self.begin, addresses + np.uint64(_SAME_PLACE), side="right") - 1
        known = (place >= 0) & (addresses < self.end[np.maximum(place, 0)])
        return np.where(known, place, -1)


NONE = Symbols(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64), ())


@lru_cache(64)
def symbols_of(path: Path) -> Symbols:
    """Return the functions of a program or library from .symtab, or from .dynsym if it was stripped.

    If a function has several names, the first one is used. A function without a size extends to the next function or to
    the end of its section. The result is empty if the file does not exist, is not a 64-bit little-endian ELF file, or
    is damaged.
    """
    try:
        with open(path, "rb", opener=without_waiting) as file, reading(path, path.stat().st_size):
            elf = ElfFile(file)
            if elf.bits != 64 or not elf.little_endian:
                return NONE
            table = elf.section(".symtab") or elf.section(".dynsym")
            if table is None:
                return NONE
            ends = np.array([section.address + section.size for section in elf.sections()], np.uint64)
            data = elf.data(table)
            symbols = np.frombuffer(data[: len(data) // _SYMBOL.itemsize * _SYMBOL.itemsize], _SYMBOL)
            texts = elf.linked(table)
    except (OSError, NoElf, FormatError, OverflowError):
        return NONE
    kind = symbols["info"] & 15
    symbols = symbols[((kind == _FUNCTION) | (kind == _INDIRECT)) & (symbols["section"] > 0)]
    symbols = symbols[symbols["section"] < ends.size]
    begin, first = np.unique(symbols["value"], return_index=True)
    symbols = symbols[first]
    following = np.append(begin[1:], np.uint64(1 << 63))
    unsized = np.minimum(following, ends[symbols["section"]])
    end = np.where(symbols["size"] > 0, begin + symbols["size"], unsized)
    names = tuple(function_of_symbol(text_at(texts, int(at))) for at in symbols["name"])
    return Symbols(begin, end, names)
