# SPDX-License-Identifier: Apache-2.0
"""Read and write filter files of Score-P, which select the regions to measure.

Grammar (Score-P 8.4):

    file    := { files | regions }
    files   := "SCOREP_FILE_NAMES_BEGIN" { rule { pattern } } "SCOREP_FILE_NAMES_END"
    regions := "SCOREP_REGION_NAMES_BEGIN" { rule { "MANGLED" | "DEMANGLED" | pattern } } "SCOREP_REGION_NAMES_END"
    rule    := "EXCLUDE" | "INCLUDE"

Tokens are separated by spaces, tabs and newlines. A backslash before a space, a tab or a `#` makes this character a
part of the token. The backslash stays in the pattern, where fnmatch(3) interprets it.

The writer writes linker names as MANGLED patterns. These have the same meaning at compile time and at run time, in C,
C++ and Fortran, for Score-P and for Quipu. The writer writes other names, for example from measurements of other tools,
as DEMANGLED patterns in a separate block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.experiment import Region, RegionKind
from quipu.modeling.limits import reading_file
from quipu.modeling.printable import printable

from .compiler_names import patterns_for
from .fnmatch import escape, matches

_FILES = "SCOREP_FILE_NAMES"
_REGIONS = "SCOREP_REGION_NAMES"
_BLOCKS = {f"{block}_BEGIN": block for block in (_FILES, _REGIONS)}
_ENDS = {f"{block}_END": block for block in (_FILES, _REGIONS)}
KEYWORDS = frozenset({*_BLOCKS, *_ENDS, "EXCLUDE", "INCLUDE", "MANGLED", "DEMANGLED"})
_NO_LINKER_NAME = re.compile(r"[\s()\[\]{}<>]|::")
_CONSTRUCTS = (".omp_target.", ".omp_outlined", ".omp_task_entry.", "..omp_par")  # as in agent/runtime/filter.cpp
_SHOWN_CONSTRUCT = " (omp "
MARK = "# Score-P filter written by Quipu"


@dataclass(frozen=True)
class Rule:
    """One pattern of a filter.

    exclude: whether it excludes or includes. mangled: whether it applies to linker names or to displayed names.
    """

    pattern: str
    exclude: bool
    mangled: bool = False


@dataclass(frozen=True)
class Filter:
    """The rules of a filter file, in order."""

    file_rules: tuple[Rule, ...] = field(default=())
    region_rules: tuple[Rule, ...] = field(default=())

    def includes(self, region: Region) -> bool:
        """Return whether a region is measured: neither its file nor its name is excluded.

        A region is included at first. Then the rules apply in their order, and the last rule that matches decides. MPI
        regions are always measured. File rules do not apply to a region whose file is unknown. The rules for a function
        also apply to the bodies of OpenMP constructs in this function.
        """
        if region.kind is RegionKind.MPI:
            return True
        if region.file and _excluded(self.file_rules, (region.file,), (region.file,)):
            return False
        shown, mangled = [region.display], [region.name]
        if host := function_of_construct(region.name):
            mangled.append(host)
            shown.append(region.display.partition(_SHOWN_CONSTRUCT)[0])
        return not _excluded(self.region_rules, shown, mangled)


def function_of_construct(name: str) -> str:
    """Return the linker name of the function that contains an OpenMP construct; "" for names of other regions.

    The names of bodies of constructs and of tasks begin with the name of the function: `solve.omp_outlined`.
    """
    return next((name.partition(mark)[0] for mark in _CONSTRUCTS if mark in name), "")


def _excluded(rules: tuple[Rule, ...], names: Sequence[str], mangled: Sequence[str]) -> bool:
    """Return whether rules exclude a region. names, mangled: its displayed names and its linker names."""
    excluded = False
    for rule in rules:
        if rule.exclude != excluded and any(matches(rule.pattern, one) for one in (mangled if rule.mangled else names)):
            excluded = rule.exclude
    return excluded


def read_filter(path: str | Path) -> Filter:
    """Read a filter file. Raises FormatError with file and line for a syntax error, UsageError if it cannot be read."""
    try:
        with reading_file(Path(path), special=True) as content:
            return parse_filter(content.decode("utf-8", "surrogateescape"), path)
    except FormatError as error:
        if isinstance(error.__cause__, OSError):
            raise UsageError(f"{path}: cannot read the filter file: {error.__cause__.strerror}") from error
        raise


def parse_filter(text: str, source: object = "filter") -> Filter:
    """Parse the text of a filter file. Raises FormatError with `source` and the line of a syntax error."""
    parser = _Parser(source)
    for number, line in enumerate(text.split("\n"), start=1):
        parser.line = number
        for token in _tokens(line, parser):
            parser.take(token)
    return parser.finish()


class _Parser:
    def __init__(self, source: object) -> None:
        self.source = source
        self.line = 0
        self.block = ""
        self.opened = 0
        self.exclude: bool | None = None
        self.mangled = False
        self.rules: dict[str, list[Rule]] = {_FILES: [], _REGIONS: []}

    def error(self, message: str, line: int | None = None) -> FormatError:
        return FormatError(self.source, message, self.line if line is None else line)

    def take(self, token: str) -> None:
        if token in _BLOCKS:
            if self.block:
                raise self.error(
                    f"{token} inside the block that line {self.opened} opened: write {self.block}_END first"
                )
            self.block, self.opened = _BLOCKS[token], self.line
            self.exclude, self.mangled = None, False
        elif token in _ENDS:
            if self.block != _ENDS[token]:
                raise self.error(f"{token} without {_ENDS[token]}_BEGIN before it")
            self.block = ""
        elif not self.block:
            raise self.error(f"{token!r} outside of a block: write {_REGIONS}_BEGIN or {_FILES}_BEGIN before it")
        elif token in ("EXCLUDE", "INCLUDE"):
            self.exclude, self.mangled = token == "EXCLUDE", False
        elif self.exclude is None:
            raise self.error(f"{token!r} comes before the first rule: write EXCLUDE or INCLUDE before it")
        elif token in ("MANGLED", "DEMANGLED"):
            if self.block != _REGIONS:
                raise self.error(f"{token} has no meaning for file names: use it in a {_REGIONS} block")
            self.mangled = token == "MANGLED"
        else:
            self.rules[self.block].append(Rule(token, self.exclude, self.mangled))

    def finish(self) -> Filter:
        if self.block:
            raise self.error(f"the block opened here has no end: write {self.block}_END after it", self.opened)
        return Filter(tuple(self.rules[_FILES]), tuple(self.rules[_REGIONS]))


def _tokens(line: str, parser: _Parser) -> list[str]:
    """Split one line into tokens. As in Score-P, a character is escaped if the previous character is a backslash."""
    tokens: list[str] = []
    start = 0
    for at, character in enumerate(line):
        escaped = at > 0 and line[at - 1] == "\\"
        if character == "\0":
            raise parser.error("a NUL character: this is not a text file")
        if character == "#" and not escaped:
            line = line[:at]
            break
        if character in " \t" and not escaped:
            tokens.append(line[start:at])
            start = at + 1
    else:
        if line.endswith("\r"):
            raise parser.error("the line ends with CR LF: save the file with Unix line ends (LF)")
        if line.endswith("\\"):
            raise parser.error("a backslash at the end of the line: line breaks cannot be escaped")
    tokens.append(line[start:])
    return [token for token in tokens if token]


def format_filter(
    names: Iterable[str], comments: Iterable[str] = (), compiler: str = "clang", dropped: Iterable[str] = ()
) -> str:
    """Return the text of a filter that measures only the regions with these names. Names are sorted and escaped.

    - names: linker names. Names that cannot be linker names (`demangled`) are compared with displayed names.
    - comments: texts for the header of the file.
    - compiler: the filter contains the linker names that this compiler writes (`patterns_for`).
    - dropped: linker names of excluded regions. An excluded OpenMP construct in a measured function gets a separate
      rule, because the rule of its function would include it.

    Raises UsageError for an empty name, which is impossible in a filter file.
    """
    header = [MARK, *(f"# {line}" for comment in comments for line in comment.splitlines())]
    given = set(names)
    others = demangled(given)
    patterns = sorted({p for name in given.difference(others) for p in patterns_for(name, compiler)})
    rules = [f"{_REGIONS}_BEGIN", "EXCLUDE *", "INCLUDE MANGLED", *map(_checked, patterns), f"{_REGIONS}_END"]
    if others:
        shown = (_checked(escape(name)) for name in others)
        rules += [f"{_REGIONS}_BEGIN", "INCLUDE DEMANGLED", *shown, f"{_REGIONS}_END"]
    if constructs := sorted(name for name in set(dropped) - given if function_of_construct(name) in given):
        left_out = (_checked(escape(name)) for name in constructs)
        rules += [f"{_REGIONS}_BEGIN", "EXCLUDE MANGLED", *left_out, f"{_REGIONS}_END"]
    return "\n".join([*header, *rules]) + "\n"


def demangled(names: Iterable[str]) -> list[str]:
    """Return, sorted, the names that cannot be linker names, because they contain blanks, brackets or ::."""
    return sorted({name for name in names if _NO_LINKER_NAME.search(name)})


def exclusion(name: str) -> str:
    """Return the rule of a filter file that excludes the region with this linker name."""
    return f"EXCLUDE MANGLED {_checked(escape(name))}"


def _shown(character: str) -> str:
    """Return a character of a pattern as written in a filter file.

    A character that controls a terminal becomes one `?` for each of its bytes, because patterns match bytes.
    """
    if character in " \t#":
        return "\\" + character
    if printable(character) == character and character not in "\n\0":
        return character
    return "?" * (1 if "\udc80" <= character <= "\udcff" else len(character.encode("utf-8", "surrogatepass")))


def _checked(pattern: str) -> str:
    """Return a pattern as written in a filter file. Raises UsageError for an empty pattern."""
    if not pattern:
        raise UsageError("a region has an empty name, which a filter file cannot contain")
    if pattern in KEYWORDS:
        return "\\" + pattern
    text = "".join(map(_shown, pattern))
    if pattern.endswith("\\"):  # a backslash at the end of a line is a syntax error; the brackets avoid it
        return text[:-2] + "[\\\\]"
    return text
