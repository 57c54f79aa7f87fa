# SPDX-License-Identifier: Apache-2.0
"""Convert the linker names of clang and flang to patterns for the linker names of other compilers.

Filters of Quipu contain the names of clang and flang. Score-P sees the names of the compiler that `scorep` calls. C
names are the same for all compilers. C++ names follow the Itanium C++ ABI, but compilers differ in:

- constructors and destructors: GCC may emit another variant (section 5.1.4.3 of the ABI),
- lambdas in functions that are not inline: clang numbers them (`$_0`), GCC writes their parameters (`UliE_`),
- template parameters that depend on others: clang 18 and later write their kind (`Tn`, for example for
  `enable_if_t<...> = 0`), GCC before 14 does not.

Names contain back references, which are numbers of earlier parts of the name. If the earlier parts differ between
compilers, the later numbers do, too. A wildcard then replaces the rest of the name.

Fortran names: flang writes _QMmodPproc, _QMmodSsubPproc, _QMmodFhostPproc and _QQmain (BijectiveInternalNameUniquing in
the documentation of flang). gfortran writes __mod_MOD_proc, __mod.sub_MOD_proc, proc.N, MAIN__ and, for procedures with
ENTRY statements, master.N.proc_. The numbers N do not follow from the names of flang.
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
    """Return the patterns of a filter that match a function in the naming of a compiler.

    name: linker name by clang or flang. compiler: one of `COMPILERS`. The patterns also match other functions in two
    cases: internal procedures of Fortran with the same name in other host procedures, and other lambdas in the same
    function. Types of MPI handles in a name match the handle types of every MPI. A filter that was made from a
    simulation therefore also works for the program with another MPI.
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
    """Yield the parts of a C++ linker name in which compilers differ (see above), outside of identifiers."""
    at = 0
    while found := _TOKEN.match(name, at):
        at = found.end() + int(found["length"] or 0)
        if found.lastgroup not in (None, "length"):
            yield found


def _itanium(name: str) -> tuple[str, ...]:
    """Return the patterns for a C++ linker name of clang in the naming of GCC."""
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
    """Return the patterns for a name: one for each variant of the constructor or destructor in it.

    variant: None if there is none. rest: end of each pattern.
    """
    if variant is None:
        return (escape(name) + rest,)
    before, after = name[: variant.start() + 1], name[variant.end() :]
    return tuple(escape(before + digit + after) + rest for digit in _VARIANTS[variant["variant"][0]])


def _gfortran(name: str) -> str:
    """Return the pattern for a Fortran linker name of flang (_QM…) in the naming of gfortran."""
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
