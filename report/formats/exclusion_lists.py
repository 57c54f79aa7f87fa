"""Selections in the words of other instrumenters: GCC's options, and lists of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quipu.modeling.callgraph import Function


@dataclass(frozen=True)
class GccOptions:
    """Options for GCC that leave functions out. measured_too: names that could not be left out without others."""

    options: tuple[str, ...]
    measured_too: tuple[str, ...]


def gcc_options(functions: Iterable[Function], kept: Iterable[str]) -> GccOptions:
    """Return the options that make gcc instrument the functions with these linker names alone, as far as it can.

    GCC compares parts of names as people read them, and parts of paths: what is part of a kept function's
    name, or file, cannot be left out by it. Commas are escaped.
    """
    wanted = frozenset(kept)
    all_of_them = [function for function in functions if function.defined]
    names = [_shown(function) for function in all_of_them if function.name in wanted]
    kept_files = {function.file for function in all_of_them if function.name in wanted}
    files = sorted({f.file for f in all_of_them if f.file and not any(f.file in file for file in kept_files)})
    dropped = {_shown(f) for f in all_of_them if f.name not in wanted and f.file not in files and not f.start}
    measured_too = sorted(name for name in dropped if any(name in other for other in names))
    options = []
    if excluded := sorted(dropped - set(measured_too)):
        options.append("-finstrument-functions-exclude-function-list=" + _joined(excluded))
    if files:
        options.append("-finstrument-functions-exclude-file-list=" + _joined(files))
    return GccOptions(("-finstrument-functions", *options), tuple(measured_too))


def _shown(function: Function) -> str:
    """Return a name as GCC compares it: without the parameters, which it writes otherwise than LLVM does."""
    display = function.display
    depth = 0
    for at, character in enumerate(display):
        depth += (character in "<[") - (character in ">]")
        if character == "(" and depth == 0 and at > 0 and not display[:at].endswith(("operator", "{anonymous", "::")):
            return display[:at]
    return display


def _joined(texts: Sequence[str]) -> str:
    return ",".join(text.replace(",", "\\,") for text in texts)


def name_list(names: Iterable[str]) -> str:
    """Return linker names, one a line and sorted, as CaPI and XRay's tools take them."""
    return "".join(f"{name}\n" for name in sorted(set(names)))
