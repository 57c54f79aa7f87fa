# SPDX-License-Identifier: Apache-2.0
"""Write selections of functions for other instrumenters: options of GCC, and lists of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quipu.modeling.callgraph import Function


@dataclass(frozen=True)
class GccOptions:
    """Options for GCC that exclude functions from instrumentation.

    measured_too: functions that are not selected, but that GCC cannot exclude without excluding a selected function.
    """

    options: tuple[str, ...]
    measured_too: tuple[str, ...]


def gcc_options(functions: Iterable[Function], kept: Iterable[str]) -> GccOptions:
    """Return the options with which GCC instruments only selected functions, as far as possible.

    functions: all functions of the program. kept: linker names of the selected functions.

    GCC has a list of function names and a list of file names. It excludes a function if an entry is a part of the
    displayed name of the function, or of the path of its source file on the command line. A name that is part of the
    name of a selected function therefore cannot be an entry. The same holds for paths.
    """
    wanted = frozenset(kept)
    all_of_them = [function for function in functions if function.defined]
    names = [_shown(function.display) for function in all_of_them if function.name in wanted]
    kept_files = {function.file for function in all_of_them if function.name in wanted}
    # The path on the command line of the compiler may be relative, so only the name of the file is an entry.
    ends = {f.file: f.file.rpartition("/")[2] for f in all_of_them if f.file}
    files = {file: end for file, end in ends.items() if not any(end in other for other in kept_files)}
    dropped = {_shown(f.display) for f in all_of_them if not (f.name in wanted or f.file in files or f.start)}
    measured_too = {name for name in dropped if any(_part(name) in other for other in names)}
    options = []
    if excluded := sorted({_part(name) for name in dropped - measured_too}):
        options.append("-finstrument-functions-exclude-function-list=" + _joined(excluded))
    if files:
        options.append("-finstrument-functions-exclude-file-list=" + _joined(sorted(set(files.values()))))
    return GccOptions(("-finstrument-functions", *options), tuple(sorted(measured_too)))


def _shown(display: str) -> str:
    """Return the form of a displayed name that GCC compares with its lists: without parameters and result type."""
    text = _LAMBDA.sub("{lambda}", display.replace("(anonymous namespace)", "{anonymous}"))
    start = depth = at = 0
    in_operator = False
    while at < len(text):
        if operator := _OPERATOR.match(text, at):
            in_operator, at = in_operator or depth == 0, operator.end()
            continue
        if text[at] == "(" and depth == 0:
            break
        depth += (text[at] in "<[(") - (text[at] in ">])")
        at += 1
        if text[at - 1] == " " and depth == 0 and not in_operator:
            start = at
    return text[start:at]


def _part(shown: str) -> str:
    """Return the part of a name that clang and GCC write equally: the part without template arguments."""
    if shown.endswith(">") and "operator" not in shown:
        depth = 0
        for at in range(len(shown) - 1, -1, -1):
            depth += (shown[at] == ">") - (shown[at] == "<")
            if depth == 0:
                shown = shown[:at]
                break
    before, _, last = shown.partition("operator")[0].rpartition(">")
    return (shown[len(before) :] if last else shown).replace("{lambda}", "<lambda")


_LAMBDA = re.compile(r"(\$_\d+|'lambda\d*'(\([^)]*\))?)(::operator\(\))?")
_OPERATOR = re.compile(r"(?<![\w$])operator(?!\w)(\(\)|\[\]|[-+*/%^&|~!=<>,]+)?")


def _joined(texts: Sequence[str]) -> str:
    return ",".join(text.replace(",", "\\,") for text in texts)


def name_list(names: Iterable[str]) -> str:
    """Return sorted linker names, one per line, as CaPI and the tools of XRay read them."""
    return "".join(f"{name}\n" for name in sorted(set(names)))
