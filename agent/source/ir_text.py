# SPDX-License-Identifier: Apache-2.0
"""Parse the text of a module of LLVM IR, as LLVM prints it, into functions, blocks and instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_NAME = r'(?:"(?:[^"\\]|\\.)*"|[-$._\w]+)'
_GLOBAL = re.compile(rf"@({_NAME})")
_DEFINE = re.compile(rf"define\b(?P<before>.*?)@(?P<name>{_NAME})\(")
_DECLARED = re.compile(rf"(?:define|declare)\b(?P<before>.*?)@(?P<name>{_NAME})\(")
_LABEL = re.compile(rf"^({_NAME}):")
_TARGET = re.compile(rf"label %({_NAME})")
_RESULT = re.compile(rf"^%({_NAME}) = (.*)$", re.DOTALL)
_CALLEE = re.compile(rf"(?<![\w.])([@%]{_NAME}|asm\b.*?,\s*\"[^\"]*\")\(")
_DEBUG = re.compile(r"!dbg !(\d+)")
_METADATA = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$")
_FIELD = re.compile(r'(\w+): ("(?:[^"\\]|\\.)*"|![\d]+|[-\w.| ]+)')
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")
_LOCAL = ("private", "internal")
_WEAK = ("linkonce", "linkonce_odr", "weak", "weak_odr", "available_externally")
_OPENS, _CLOSES = "([{<", ")]}>"
CALLS = frozenset({"call", "invoke", "callbr"})


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    result: name of its result; empty if it has none. text: the instruction without its result. debug: number of the
    metadata of its source location; -1 if it has none.
    """

    opcode: str
    text: str
    result: str = ""
    debug: int = -1

    @property
    def targets(self) -> list[str]:
        """Return the names of the blocks to which the instruction may branch."""
        return [unquoted(name) for name in _TARGET.findall(self.text)]


@dataclass
class Block:
    """A basic block. The last instruction is its terminator."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)


@dataclass
class IrFunction:
    """A function with a body.

    local: not visible in other modules. weak: several modules may define it. debug: number of the metadata of its
    description (DISubprogram); -1 if it has none.
    """

    name: str
    local: bool
    weak: bool
    debug: int
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class IrModule:
    """A module.

    - signatures: type of each function by name, also of functions without a body.
    - used: functions and variables in the initializers of variables. started: functions that run before main.
    - aliases: aliased name by alias.
    - metadata: kind (such as DISubprogram) and fields of the debug information, by number.
    """

    functions: tuple[IrFunction, ...]
    signatures: Mapping[str, str]
    used: frozenset[str]
    aliases: Mapping[str, str]
    started: frozenset[str]
    metadata: Mapping[int, tuple[str, Mapping[str, str]]]

    def place(self, number: int) -> tuple[str, int]:
        """Return file and line of a source location or of a function, by the number of its metadata.

        The result is ("", 0) if unknown.
        """
        kind, fields = self.metadata.get(number, ("", {}))
        line = fields.get("line", "")
        return self.file(number), int(line) if kind and line.isdecimal() else 0

    def file(self, number: int) -> str:
        """Return the path of the source file to which an entry of metadata belongs; empty if unknown."""
        for _ in range(1000):
            kind, fields = self.metadata.get(number, ("", {}))
            if kind == "DIFile":
                name, folder = (unquoted(fields.get(key, "")) for key in ("filename", "directory"))
                return name if name.startswith("/") or not folder else f"{folder}/{name}"
            above = fields.get("file") or fields.get("scope") or ""
            if not above.startswith("!"):
                return ""
            number = int(above[1:])
        return ""

    def field(self, number: int, name: str) -> str:
        """Return a text field of an entry of metadata; empty if it is missing."""
        return unquoted(self.metadata.get(number, ("", {}))[1].get(name, ""))


def unquoted(name: str) -> str:
    """Return a name without the quotes and escapes of the text form."""
    if not name.startswith('"'):
        return name
    raw = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), name[1:-1])
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def globals_in(text: str) -> Iterator[str]:
    """Yield the names of functions and variables in a text."""
    return (unquoted(name) for name in _GLOBAL.findall(text))


def call_of(instruction: Instruction) -> tuple[str, str, list[str]]:
    """Return callee, function type and arguments of a call. The callee of an indirect call is empty.

    The type of inline assembly is empty.
    """
    found = _CALLEE.search(instruction.text)
    if found is None:
        return "", "", []
    arguments = _arguments(instruction.text, found.end())
    before = instruction.text[: found.start()].rstrip()
    declared = _last_type(before)
    if declared.endswith(")"):
        kind = declared
    else:
        kind = f"{declared} ({', '.join(first_type(argument) for argument in arguments)})"
    callee = unquoted(found[1][1:]) if found[1].startswith("@") else ""
    return callee, "" if found[1].startswith("asm") else kind, arguments


def _arguments(text: str, start: int) -> list[str]:
    """Return the arguments in a list that begins after the parenthesis before `start`."""
    parts, depth, begin = [], 0, start
    quoted = False
    for place in range(start, len(text)):
        character = text[place]
        if character == '"':
            quoted = not quoted
        if quoted:
            continue
        if character in _OPENS:
            depth += 1
        elif character in _CLOSES:
            depth -= 1
            if depth < 0:
                parts.append(text[begin:place])
                break
        elif character == "," and depth == 0:
            parts.append(text[begin:place])
            begin = place + 1
    return [part.strip() for part in parts if part.strip()]


def first_type(text: str) -> str:
    """Return the type at the begin of an argument, such as "ptr" in "ptr noundef %x"."""
    if text and text[0] in _OPENS:
        depth = 0
        for place, character in enumerate(text):
            depth += (character in _OPENS) - (character in _CLOSES)
            if depth == 0:
                return text[: place + 1]
    return text.split(" ", 1)[0]


def _last_type(text: str) -> str:
    """Return the type at the end of a text. The type of a function includes the types of its arguments."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        character = text[place]
        depth += (character in _CLOSES) - (character in _OPENS)
        if depth == 0 and character == " " and not text[place + 1 :].startswith("("):
            return text[place + 1 :]
    return text


def read_text(text: str) -> IrModule:
    """Parse the text of a module that LLVM printed."""
    functions: list[IrFunction] = []
    signatures: dict[str, str] = {}
    used: set[str] = set()
    aliases: dict[str, str] = {}
    started: set[str] = set()
    metadata: dict[int, tuple[str, Mapping[str, str]]] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if line.startswith(("define", "declare")):
            signatures.update(_signature(line))
        if line.startswith("define"):
            functions.append(_function(line, lines))
        elif line.startswith("@"):
            name, _, value = line.partition(" = ")
            names = list(globals_in(value.partition(", section ")[0]))
            if re.search(r"\balias\b", value) and names:
                aliases[unquoted(name[1:])] = names[-1]
                continue
            used.update(names)
            if name == "@llvm.global_ctors":
                started.update(names)
        elif line.startswith("!") and (found := _METADATA.match(line)):
            metadata[int(found[1])] = found[2], dict(_FIELD.findall(found[3]))
    return IrModule(tuple(functions), signatures, frozenset(used), aliases, frozenset(started), metadata)


def _signature(line: str) -> Iterator[tuple[str, str]]:
    """Yield name and type of the function that a line defines or declares. `call_of` returns types in the same form."""
    found = _DECLARED.match(line)
    if found is not None and not found["name"].startswith("llvm."):
        arguments = _arguments(line, found.end())
        kinds = ", ".join(first_type(argument) for argument in arguments)
        yield unquoted(found["name"]), f"{_last_type(found['before'].rstrip())} ({kinds})"


def _function(head: str, lines: Iterator[str]) -> IrFunction:
    """Parse a function. head: its first line. lines: the following lines, consumed up to the end of the function."""
    found = _DEFINE.match(head)
    name, before = (unquoted(found["name"]), found["before"].split()) if found else ("", [])
    local, weak = any(word in _LOCAL for word in before), any(word in _WEAK for word in before)
    debug = _DEBUG.search(head)
    function = IrFunction(name, local, weak, int(debug[1]) if debug else -1)
    pending: list[str] = []
    block: Block | None = None
    for line in lines:
        if line == "}":
            break
        label = _LABEL.match(line)
        begins = line.startswith("  ") and not line.startswith(("   ", "  ]"))
        if pending and (label or begins):
            block = _add(function, block, pending)
        if label:
            block = Block(unquoted(label[1]))
            function.blocks.append(block)
        elif line.startswith("  ") and not line.startswith("    #dbg"):
            pending.append(line.strip())
    _add(function, block, pending)
    return function


def _add(function: IrFunction, block: Block | None, pending: list[str]) -> Block | None:
    """Add the instruction in the lines `pending` to a block, and clear these lines; return the block."""
    if not pending:
        return block
    text = " ".join(pending)
    pending.clear()
    if block is None:  # the first block may have no label
        block = Block("")
        function.blocks.append(block)
    result = ""
    if found := _RESULT.match(text):
        result, text = unquoted(found[1]), found[2]
    words = text.split(" ", 2)
    opcode = words[1] if words[0] in ("tail", "musttail", "notail") and len(words) > 1 else words[0]
    debug = _DEBUG.search(text)
    block.instructions.append(Instruction(opcode, text, result, int(debug[1]) if debug else -1))
    return block
