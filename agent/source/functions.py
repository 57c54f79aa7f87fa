"""Static facts that the compiler pass left inside a program: its functions, their size, whom they call.

The section `.quipu.facts` is not loaded when the program runs. It holds one line of JSON per function, from all
object files one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from quipu.modeling.errors import FormatError

SECTION = ".quipu.facts"
_COMPRESSED = 0x800


@dataclass(frozen=True)
class FunctionFacts:
    """One function after inlining.

    name: linker name. blocks, instructions: of LLVM IR. calls: linker names of the functions that it calls, in order
    of first call; indirect_calls: how many calls have an unknown callee. hook: it is a region of its own.
    """

    name: str
    display: str
    file: str
    line: int
    blocks: int
    instructions: int
    calls: tuple[str, ...]
    indirect_calls: int
    hook: bool


def static_functions(path: Path | str) -> list[FunctionFacts]:
    """Return the functions of a program, library or object file in the order of the section.

    Inline and template functions that several object files hold appear once. Raises FormatError if the file is no
    ELF file, holds no facts, or the facts are damaged.
    """
    path = Path(path)
    functions: dict[str, FunctionFacts] = {}
    for number, content in entries(path, section(path)):
        facts = _function(path, content, number)
        functions.setdefault(facts.name, facts)
    return list(functions.values())


def entries(path: Path, text: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects in the text of the section with their numbers, from 1. Raises FormatError if it is damaged."""
    for number, line in enumerate(text.replace(b"\0", b"").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise damaged(path, number) from error
        if not isinstance(content, dict):
            raise damaged(path, number)
        yield number, content


def section(path: Path) -> bytes:
    """Return the section of a program, library or object file. Raises FormatError as `static_functions` does."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            found = [entry for entry in ELFFile(file).iter_sections() if entry.name == SECTION]
            for entry in found:
                if entry["sh_flags"] & _COMPRESSED or entry["sh_offset"] + entry["sh_size"] > size:
                    raise FormatError(path, f"section {SECTION} is damaged: build the program again")
            pieces = [bytes(entry.data()) for entry in found]
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
    except (ELFError, ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
        # What pyelftools raises for damaged headers, besides its own error.
        raise FormatError(path, "is not a program or object file (ELF), or it is damaged") from error
    if not pieces:
        raise FormatError(
            path, f"holds no section {SECTION}: build it with the Quipu compiler wrappers, and do not strip it"
        )
    return b"\n".join(pieces)


def _function(path: Path, content: dict[str, Any], number: int) -> FunctionFacts:
    texts = [content.get(key, "") for key in ("name", "display", "file")]
    numbers = [content.get(key, 0) for key in ("line", "blocks", "instructions", "indirect_calls")]
    calls, hook = content.get("calls", []), content.get("hook", False)
    if not all(isinstance(text, str) for text in texts) or not texts[0]:
        raise damaged(path, number)
    if not all(is_count(value) for value in numbers) or not isinstance(hook, bool):
        raise damaged(path, number)
    if not isinstance(calls, list) or not all(isinstance(call, str) for call in calls):
        raise damaged(path, number)
    return FunctionFacts(
        name=texts[0],
        display=texts[1] or texts[0],
        file=texts[2],
        line=numbers[0],
        blocks=numbers[1],
        instructions=numbers[2],
        calls=tuple(calls),
        indirect_calls=numbers[3],
        hook=hook,
    )


def is_count(value: Any) -> bool:
    """Whether a value of JSON is a number that could be a count."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def damaged(path: Path, number: int) -> FormatError:
    """Return the error for an entry of the section that makes no sense."""
    return FormatError(path, f"section {SECTION}, entry {number}, is damaged: build the program again")
