# SPDX-License-Identifier: Apache-2.0
"""Convert the linker names of clang and flang to patterns for the linker names of other compilers.

Quipu makes filters from the names of clang and flang; Score-P has the names of the compiler behind `scorep`. C names
are the same for all compilers. C++ names follow the Itanium C++ ABI; compilers differ in

- constructors and destructors: GCC may emit another variant (5.1.4.3),
- lambdas in functions that are not inline: clang numbers them (`$_0`), GCC writes their parameters (`UliE_`),
- template parameters that depend on others: clang 18 and later write their kind (`Tn`, for example for
  `enable_if_t<...> = 0`), GCC before 14 does not.

Back references count earlier parts of a name. If these parts are unknown, a wildcard replaces the rest. Fortran: flang
writes _QMmodPproc, _QMmodSsubPproc, _QMmodFhostPproc, _QQmain (flang's document BijectiveInternalNameUniquing).
gfortran writes __mod_MOD_proc, __mod.sub_MOD_proc, proc.N, MAIN__ and, for ENTRY statements, master.N.proc_, with its
own numbers N.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from quipu.modeling.mpi_handles import of_any_build

from .fnmatch import escape

COMPILERS = ("clang", "gcc")
_VARIANTS = {"C": "12", "D": "012"}
_PART = re.compile(r"([MSFPB])([^A-Z]*)")
_TOKEN = re.compile(
    r"(?P<lambda>3\$_\d|4\$_\d\d|5\$_\d{3})"
    r"|(?P<variant>[CD][012])(?=[EI])"
    r"|(?P<kind>T[ykntp](?=[A-Za-z\d]))"
    r"|S[\dA-Z]*_|T\d*_|L[a-z]n?\d+E|A\d+_|(?P<length>[1-9]\d*)|(?s:.)"
)


def patterns_for(name: str, compiler: str) -> tuple[str, ...]:
    """Return the patterns of a filter for a function of clang or flang, in the naming of another compiler.

    compiler: one of `COMPILERS`. A pattern also matches other functions in two cases: internal procedures of Fortran of
    the same name in other hosts, and lambdas of the same function. Handles of MPI match the handles of every MPI, so
    that a filter from a simulation works for the real program.
    """
    if compiler == "clang":
        plain = escape(name)
        return ((of_any_build(name) if plain == name else None) or plain,)
    if name.startswith("_Z"):
        return _itanium(name)
    if name.startswith("_FortranA"):  # a reduction: a function in flang, a loop in gfortran
        return ()
    if name == "_QQmain":
        return ("MAIN__", "main")
    if name.startswith("_Q"):
        return (_gfortran(name),)
    if name.endswith("_"):  # an external procedure; one with ENTRY statements is master.N.name
        return (escape(name), f"master.[0-9]*.{escape(name)}")
    return (escape(name),)


def _tokens(name: str) -> Iterator[re.Match[str]]:
    """Yield the parts of a C++ linker name that distinguish compilers; none is inside of an identifier."""
    at = 0
    while found := _TOKEN.match(name, at):
        at = found.end() + int(found["length"] or 0)
        if found.lastgroup not in (None, "length"):
            yield found


def _itanium(name: str) -> tuple[str, ...]:
    variant: re.Match[str] | None = None
    for token in _tokens(name):
        if token.lastgroup == "variant":
            variant = token
        elif token.lastgroup == "kind":
            return _with_variants(name[: token.start()], variant, "*")
        elif token.lastgroup == "lambda":
            before = name[: token.start()]
            # The name of a lambda outside of functions contains the name of its variable.
            return _with_variants(before, variant, "*Ul*" if before in ("_ZN", "_ZNK") else "Ul*")
    return _with_variants(name, variant, "")


def _with_variants(name: str, variant: re.Match[str] | None, rest: str) -> tuple[str, ...]:
    """Return a name with all variants of the constructor or destructor in it, and a pattern for its rest."""
    if variant is None:
        return (escape(name) + rest,)
    before, after = name[: variant.start() + 1], name[variant.end() :]
    return tuple(escape(before + digit + after) + rest for digit in _VARIANTS[variant["variant"][0]])


def _gfortran(name: str) -> str:
    parts = _PART.findall(name[2:])
    if "".join(kind + text for kind, text in parts) != name[2:] or not parts or parts[-1][0] != "P":
        return escape(name)
    procedure = parts[-1][1]
    if any(kind == "F" for kind, _ in parts):
        return f"{escape(procedure)}.[0-9]*"
    modules = [text for kind, text in parts if kind == "M"]
    if not modules:
        return escape(f"{procedure}_")
    nested = [text for kind, text in parts if kind == "S"]
    return escape(f"__{'.'.join([modules[0], *nested[-1:]])}_MOD_{procedure}")
