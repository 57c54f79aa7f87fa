"""Linker names of the same function in programs of different compilers.

Filters are made from names that clang and flang give; Score-P sees those of the compiler behind `scorep`. C names are
the same everywhere. Of C++ constructors and destructors GCC may emit another variant (Itanium C++ ABI, 5.1.4.3).
Fortran: flang writes _QMmodPproc, _QMmodFhostPproc, _QQmain (flang's doc BijectiveInternalNameUniquing), gfortran
__mod_MOD_proc, proc.N with a number of its own, MAIN__.
"""

from __future__ import annotations

import re

from .fnmatch import escape

COMPILERS = ("clang", "gcc")
_VARIANT = re.compile(r"([CD])([012])(?=E)")
_VARIANTS = {"C": "12", "D": "012"}
_PART = re.compile(r"([MSFPB])([^A-Z]*)")


def patterns_for(name: str, compiler: str) -> tuple[str, ...]:
    """Return the patterns of a filter that fit a function of clang or flang as another compiler names it.

    compiler: one of `COMPILERS`. A pattern fits the function and, of internal procedures of Fortran, those of the
    same name in other hosts.
    """
    if compiler == "clang":
        return (escape(name),)
    if name.startswith("_Z"):
        return tuple(escape(variant) for variant in _variants(name))
    if name == "_QQmain":
        return ("MAIN__", "main")
    if name.startswith("_Q"):
        return (_gfortran(name),)
    return (escape(name),)


def _variants(name: str) -> tuple[str, ...]:
    """Return a name with all variants of the constructor or destructor that it may be of."""
    found = list(_VARIANT.finditer(name))
    if not found:
        return (name,)
    last = found[-1]
    return tuple(name[: last.start(2)] + digit + name[last.end(2) :] for digit in _VARIANTS[last.group(1)])


def _gfortran(name: str) -> str:
    parts = _PART.findall(name[2:])
    if "".join(kind + text for kind, text in parts) != name[2:] or not parts or parts[-1][0] != "P":
        return escape(name)
    procedure = parts[-1][1]
    if any(kind == "F" for kind, _ in parts):
        return f"{escape(procedure)}.[0-9]*"
    modules = [text for kind, text in parts if kind == "M"]
    return escape(f"__{modules[0]}_MOD_{procedure}" if modules else f"{procedure}_")
