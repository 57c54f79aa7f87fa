# SPDX-License-Identifier: Apache-2.0
"""Read the layout of profiles from agent/runtime/profile.def, which also defines the C structs of the runtime."""

from __future__ import annotations

import re
import struct
from pathlib import Path

_LINE = re.compile(r"^QUIPU_.*$", re.MULTILINE)
_ITEM = re.compile(r"QUIPU_(STRUCT|FIELD|ARRAY|VALUE)\((\w+), (\w+)(?:, (\w+))?\)")
_TEXT = re.compile(r'^#define (QUIPU_\w+) "(.*)"$', re.MULTILINE)
_BYTES = {"char": 1, "uint32_t": 4, "uint64_t": 8}
_FORMATS = {4: "I", 8: "Q"}

Field = tuple[str, str] | tuple[str, str, tuple[int]]


class Layout:
    """The structs, constants and strings of a profile.def. Names have no prefix quipu_ or QUIPU_.

    texts: name → string. numbers: name → constant.
    """

    def __init__(self, definition: str) -> None:
        """Parse the text of a profile.def."""
        self.texts = {name.removeprefix("QUIPU_"): text for name, text in _TEXT.findall(definition)}
        self.numbers: dict[str, int] = {}
        # Struct → its fields: name, bytes per element, number of elements (0: not an array).
        self._fields: dict[str, list[tuple[str, int, int]]] = {}
        fields: list[tuple[str, int, int]] = []
        for item, first, second, third in _ITEM.findall("\n".join(_LINE.findall(definition))):
            if item == "STRUCT":
                fields = self._fields[first] = []
            elif item == "VALUE":
                self.numbers[first] = int(second)
            else:
                fields.append((second, _BYTES[first], int(third or 0)))

    def record(self, name: str) -> list[Field]:
        """Return a struct as an argument for numpy.dtype. Arrays of char have the type void. Raises KeyError."""
        return [_numpy(*field) for field in self._fields[name]]

    def packed(self, name: str) -> struct.Struct:
        """Return a struct without padding as `struct.Struct`. It must contain only numbers and arrays of char."""
        formats = [f"{count}s" if size == 1 else _FORMATS[size] for _, size, count in self._fields[name]]
        return struct.Struct("<" + "".join(formats))


def _numpy(name: str, size: int, count: int) -> Field:
    if size == 1:
        return name, f"V{count}"
    return (name, f"<u{size}", (count,)) if count else (name, f"<u{size}")


LAYOUT = Layout((Path(__file__).with_name("runtime") / "profile.def").read_text(encoding="utf-8"))


def function_of_symbol(name: str) -> str:
    """Return the linker name of the function that a symbol belongs to.

    The symbol may be a version of the function that the compiler pass added (llvm_pass/versions.h).
    """
    return name.partition(".quipu")[0] or name
