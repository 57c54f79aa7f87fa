# SPDX-License-Identifier: Apache-2.0
"""Read functions and call graph from LLVM IR of any compiler: bitcode, text, and folders or archives with these files.

llvmlite reads and verifies the files, and promotes the variables of functions to registers (SROA). LLVM then prints the
module as text. The form of this text does not depend on the compiler, so functions, calls and loops are read from it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quipu.modeling.errors import EnvironmentProblem, FormatError

from .described import DescribedAddress, DescribedAlias, DescribedFunction, Entry
from .functions import StaticFunction
from .ir_loops import IrLoop, loops_of
from .ir_text import CALLS, Instruction, IrFunction, IrModule, call_of, globals_in, read_text
from .readable import readable_name

_BITCODE, _WRAPPED, _ARCHIVE = b"BC\xc0\xde", b"\xde\xc0\x17\x0b", b"!<arch>\n"
_SUFFIXES = (".bc", ".ll")
_PRODUCER = re.compile(r"Producer: '(?:LLVM|APPLE_[0-9_]*)?([0-9]+(?:\.[0-9]+)*)")
_IDENT = re.compile(r'!"[^"]*?version ([0-9]+(?:\.[0-9]+)*)')
_MODULE_LINE = re.compile(rb"^(?:; ModuleID|source_filename|target |define |declare |@|%|attributes |!)", re.MULTILINE)
_VALUE = re.compile(r'%((?:"(?:[^"\\]|\\.)*"|[-$._\w]+))')
_KEPT = re.compile(r" optnone(?=[^\n]*\}$)", re.MULTILINE)  # attribute that keeps passes from changing a function
_STATEMENTS = frozenset({"store", "switch", "indirectbr", "atomicrmw", "cmpxchg"})
_TERMINATE = "__clang_call_terminate"  # a function that clang adds
_STARTS = frozenset({"main", "_QQmain"})


@dataclass(frozen=True)
class IrFacts:
    """A function in a file of LLVM IR.

    loops: for each loop, outer loops before inner ones, its depth (1: not inside of another loop) and its trip count;
    None if the trip count is not a constant.
    """

    function: StaticFunction
    loops: tuple[tuple[int, int | None], ...]


def is_ir(path: Path) -> bool:
    """Return whether a path is a folder, a file of LLVM IR, or an archive with such files."""
    if path.is_dir():
        return True
    try:
        with path.open("rb") as file:
            head = file.read(8)
            if head.startswith((_BITCODE, _WRAPPED)) or (path.suffix == ".ll" and not head.startswith(b"\x7fELF")):
                return True
    except OSError:
        return False  # the caller then reads the file as a program, and reports the error
    return head == _ARCHIVE and any(_is_module(content) for _, content in _members(path))


def _is_module(content: bytes) -> bool:
    """Return whether the content of a file is LLVM IR: bitcode, or text with a typical line at its begin."""
    return content.startswith((_BITCODE, _WRAPPED)) or (
        not content.startswith(b"\x7fELF") and b"\0" not in content[:4096] and bool(_MODULE_LINE.search(content[:4096]))
    )


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each member of an archive (ar(5), with long names as in GNU and BSD)."""
    data = path.read_bytes()
    names, at = b"", len(_ARCHIVE)
    while at + 60 <= len(data):
        name, size = data[at : at + 16].decode("latin-1").rstrip(), data[at + 48 : at + 58].strip()
        if not size.isdigit():
            raise FormatError(path, "is damaged: the header of a member of the archive is invalid")
        content = data[at + 60 : at + 60 + int(size)]
        at += 60 + int(size) + int(size) % 2
        if name == "//":
            names = content
        elif name.startswith("#1/") and name[3:].isdigit():
            length = int(name[3:])
            yield content[:length].rstrip(b"\0").decode("utf-8", "replace"), content[length:]
        elif name.startswith("/") and name[1:].isdigit():
            yield names[int(name[1:]) :].split(b"/\n")[0].decode("utf-8", "replace"), content
        elif name not in ("/", "/SYM64/"):
            yield name.rstrip("/"), content


def _modules(path: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield the modules in a file, archive or folder: a path for messages, and the content.

    Raises FormatError for a folder without LLVM IR, or an unreadable file.
    """
    if path.is_dir():
        files = sorted(
            file for file in path.rglob("*") if file.suffix in (*_SUFFIXES, ".a", ".rlib") and file.is_file()
        )
        found = False
        for file in files:
            if file.suffix in _SUFFIXES or is_ir(file):
                found = True
                yield from _modules(file)
        if not found:
            raise FormatError(path, "contains no LLVM IR: give a folder with .bc or .ll files, or archives of them")
        return
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
    if content.startswith(_ARCHIVE):
        yield from ((path / name, member) for name, member in _members(path) if _is_module(member))
    else:
        yield path, content


def _binding() -> Any:
    """Return the interface of llvmlite to LLVM. Raises EnvironmentProblem if llvmlite is not installed."""
    try:
        from llvmlite import binding
    except ImportError as error:
        raise EnvironmentProblem("LLVM IR needs llvmlite: pip install 'quipu[ir]'") from error
    return binding


def _parsed(path: Path, content: bytes) -> Any:
    """Return the content of a file as a verified module of llvmlite. Raises FormatError if LLVM rejects it."""
    binding = _binding()
    binding.initialize_native_target()
    try:
        if content.startswith((_BITCODE, _WRAPPED)):
            module = binding.parse_bitcode(content)
        else:
            module = binding.parse_assembly(content.decode("utf-8"))
        module.verify()
    except UnicodeDecodeError as error:
        raise FormatError(path, "is neither text nor bitcode of LLVM IR") from error
    except RuntimeError as error:
        raise _unreadable(path, content, str(error), binding) from error
    return module


def _unreadable(path: Path, content: bytes, message: str, binding: Any) -> FormatError:
    """Return the error for a module that LLVM rejects. The error for a module of newer LLVM names both versions."""
    own = ".".join(map(str, binding.llvm_version_info))
    found = _PRODUCER.search(message) or _IDENT.search(content.decode("utf-8", "replace"))
    if found and int(found[1].split(".")[0]) > binding.llvm_version_info[0]:
        return FormatError(
            path,
            f"was written by LLVM {found[1]}, and llvmlite here reads up to LLVM {own}: install a newer llvmlite, or "
            "write the file with an older compiler",
        )
    why = [line.strip() for line in message.splitlines() if line.strip()][:2]
    return FormatError(path, f"LLVM {own} cannot read it: {', '.join(why)}")


def _in_registers(text: str, binding: Any) -> str:
    """Return the text of a module after promoting its variables to registers. The basic blocks stay the same."""
    module = binding.parse_assembly(_KEPT.sub("", text))
    target = binding.Target.from_default_triple().create_target_machine()
    builder = binding.create_pass_builder(target, binding.create_pipeline_tuning_options(0))
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.run(module, builder)
    return str(module)


def _read(path: Path) -> Iterator[tuple[IrModule, IrModule]]:
    """Yield each module twice: unchanged, and with its variables in registers."""
    for place, content in _modules(path):
        module = _parsed(place, content)
        text = str(module)
        yield read_text(text), read_text(_in_registers(text, _binding()))


def object_files(path: Path) -> list[list[Entry]]:
    """Return the call-graph entries of the modules in a file, folder or archive, one list for each module.

    Raises FormatError for a module that cannot be read, EnvironmentProblem without llvmlite.
    """
    return [list(_described(before, after)) for before, after in _read(path)]


def functions_of(path: Path) -> list[IrFacts]:
    """Return the functions of all modules; the first one of each name. Raises errors like `object_files`."""
    found: dict[str, IrFacts] = {}
    for before, after in _read(path):
        loops = {function.name: loops_of(function) for function in after.functions}
        for function in before.functions:
            file, line = before.place(function.debug)
            called = Counter(callee for one in _calls(function) if not (callee := call_of(one)[0]).startswith("llvm."))
            facts = StaticFunction(
                function.name,
                _display(before, function),
                file,
                line,
                len(function.blocks),
                sum(len(block.instructions) for block in function.blocks),
                tuple(name for name in called if name),
                called[""],
            )
            trips = tuple((loop.depth, loop.trips) for loop in loops.get(function.name, ()))
            found.setdefault(function.name, IrFacts(facts, trips))
    return list(found.values())


def _calls(function: IrFunction) -> Iterator[Instruction]:
    """Yield the call instructions of a function."""
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.opcode in CALLS:
                yield instruction


def _described(module: IrModule, registers: IrModule) -> Iterator[Entry]:
    """Yield the call-graph entries of a module. registers: the same module with its variables in registers."""
    bodies = {function.name: function for function in registers.functions}
    taken = {name for name in module.used if name in module.signatures}
    entries = []
    for function in module.functions:
        if function.name.startswith(_TERMINATE):
            continue
        body = bodies.get(function.name, function)
        calls = _Calls(module, body, loops_of(body))
        taken |= calls.taken
        entries.append((function, calls))
    for function, calls in entries:
        yield _entry(module, function, calls, function.name in taken)
    defined = {function.name for function in module.functions}
    for name in sorted(taken - defined - module.aliases.keys()):
        yield DescribedAddress(name, module.signatures[name])
    for name, of in module.aliases.items():
        yield DescribedAlias(name, of, name in taken)


class _Calls:
    """The calls of a function.

    direct (by callee), indirect (by type) and handed (by callee and passed function): number of call sites, and largest
    number of loops around one of them. taken: functions whose addresses this function uses other than by calling them.
    """

    def __init__(self, module: IrModule, function: IrFunction, loops: list[IrLoop]) -> None:
        self.loops = loops
        self.direct: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.indirect: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.handed: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
        self.taken: set[str] = set()
        for number, block in enumerate(function.blocks):
            depth = sum(number in loop.blocks for loop in loops)
            for instruction in block.instructions:
                if instruction.opcode in CALLS:
                    self._add(module, instruction, depth)
                else:
                    self.taken.update(name for name in globals_in(instruction.text) if name in module.signatures)

    def _add(self, module: IrModule, instruction: Instruction, depth: int) -> None:
        callee, kind, arguments = call_of(instruction)
        if callee.startswith(("llvm.", _TERMINATE)):
            return
        given = {name for argument in arguments for name in globals_in(argument) if name in module.signatures}
        self.taken |= given
        places = [self.direct[callee]] if callee else [self.indirect[kind]] if kind else []
        for place in [*places, *(self.handed[callee, name] for name in given if callee)]:
            place[:] = place[0] + 1, max(place[1], depth)


def _entry(module: IrModule, function: IrFunction, calls: _Calls, taken: bool) -> DescribedFunction:
    file, line = module.place(function.debug)
    return DescribedFunction(
        name=function.name,
        display=_display(module, function),
        file=file,
        line=line,
        statements=_statements(module, function),
        loops=len(calls.loops),
        depth=max((loop.depth for loop in calls.loops), default=0),
        local=function.local,
        weak=function.weak,
        inline=False,
        fortran=function.name.startswith("_Q"),
        start=function.name in _STARTS or function.name in module.started,
        taken=taken,
        type=module.signatures.get(function.name, ""),
        calls=tuple((name, sites, depth) for name, (sites, depth) in calls.direct.items()),
        indirect=tuple((kind, sites, depth) for kind, (sites, depth) in calls.indirect.items()),
        handed=tuple((to, name, sites, depth) for (to, name), (sites, depth) in calls.handed.items()),
    )


def _statements(module: IrModule, function: IrFunction) -> int:
    """Return the number of source lines with executed code; without debug information, the number of instructions.

    The rules are the same as in the pass (llvm_pass/statements.h).
    """
    names = Counter(
        name for block in function.blocks for one in block.instructions for name in _VALUE.findall(one.text)
    )
    predecessors = Counter(name for block in function.blocks for name in set(block.instructions[-1].targets))
    lines: set[tuple[str, int]] = set()
    count = 0
    for block in function.blocks:
        loaded = {one.result for one in block.instructions if one.opcode == "load"}
        for one in block.instructions:
            if one.opcode in CALLS:
                callee = call_of(one)[0]
                does = callee.startswith("llvm.mem") or (not callee.startswith("llvm.") and not names[one.result])
            elif one.opcode == "ret":
                value = one.text.split(",")[0].rpartition("%")[2]
                does = not one.text.startswith("ret void") and not (value in loaded and predecessors[block.name] > 1)
            else:
                does = one.opcode in _STATEMENTS or one.text.startswith("br i1 ")
            count += does
            place = module.place(one.debug) if does else ("", 0)
            if place[1]:
                lines.add(place)
    return len(lines) if function.debug >= 0 else count


def _display(module: IrModule, function: IrFunction) -> str:
    """Return the readable name of a function: demangled, otherwise from its debug information."""
    readable = readable_name(function.name)
    return readable if readable != function.name else module.field(function.debug, "name") or readable
