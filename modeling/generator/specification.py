# SPDX-License-Identifier: Apache-2.0
"""Read functions that a user specified: tables of names, loops and messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from ..errors import FormatError, ModelingError
from ..pmnf.model import Term
from .functions import ONCE, Arrangement, Communication, Computation, Function, Operation, Step
from .growth import exact_value, parse_growth

_KEYS = ("name", "loops", "arrangement", "step", "operation", "elements", "calls")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PARTS = ("_compute", "_communicate")
_KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
    concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
"""Keywords of C++20, [lex.key], with alternative tokens."""
_SHARED = """
    main generated std functions Element Run rounded share Operation Data Window synchronize Addition Multiplication
    MultiplyAdd Relaxation Affine power right Errors Function
"""
"""Names in the common code of generated functions (source/generated.hpp)."""
_RESERVED = frozenset((*_KEYWORDS.split(), *_SHARED.split()))
_RESERVED_FORMS = re.compile(r"P?MPI_.*|.*_t|NULL")
"""Pattern of reserved names: MPI functions, POSIX types, and the macro NULL."""
_SMALLEST = {"p": 2.0, "n": 2.0}
_LARGEST_SIZE = float(1 << 62)
_STEPS = {"addition": Step.ADDITION, "multiplication": Step.MULTIPLICATION}
_STEPS |= {"multiply_add": Step.MULTIPLY_ADD, "relaxation": Step.RELAXATION}
_Choice = TypeVar("_Choice", bound=Enum)


def functions_of(content: Mapping[str, Any], source: object) -> list[Function]:
    """Return the functions of a specification (docs/generate.md): a TOML document with tables [[function]].

    Keys of a function: name; loops (a list of sizes, outermost first), arrangement ("nested" or "sequential"), step
    ("addition", "multiplication", "multiply_add", "relaxation"); operation; elements and calls (sizes). source: name of
    the file for errors. Raises FormatError with the wrong key.
    """
    tables = content.get("function")
    if unknown := sorted(set(content) - {"function"}):
        raise FormatError(source, f"unknown key {unknown[0]!r}; a specification has [[function]] tables only")
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise FormatError(source, "contains no function: write one table [[function]] for each")
    functions = [_function(table, f"function {number}", source) for number, table in enumerate(tables, 1)]
    names = [function.name for function in functions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise FormatError(source, f"there are two functions of the name {twice[0]!r}")
    if taken := [name + part for name in names for part in _PARTS if name + part in names]:
        raise FormatError(source, f"function {taken[0]}: a part of another function has this name: give another name")
    return functions


def _function(table: Mapping[str, Any], where: str, source: object) -> Function:
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FormatError(source, f'{where}: the name must be an identifier of C++ such as "solve", not {name!r}')
    if name in _RESERVED or _RESERVED_FORMS.fullmatch(name):
        raise FormatError(source, f"{where}: {name!r} is reserved by C++, MPI or generated programs: give another name")
    where = f"function {name}"
    if unknown := sorted(set(table) - set(_KEYS)):
        raise FormatError(source, f"{where}: unknown key {unknown[0]!r}; known are: {', '.join(_KEYS)}")
    loops = table.get("loops", [])
    if not isinstance(loops, list):
        raise FormatError(source, f'{where}: loops must be a list such as ["n", "log2(p)"]')
    work = Computation(
        tuple(_growth(loop, where, "loops", source) for loop in loops),
        _choice(table, "arrangement", {a.value: a for a in Arrangement}, Arrangement.NESTED, where, source),
        _choice(table, "step", _STEPS, Step.MULTIPLY_ADD, where, source),
    )
    operation = _choice(table, "operation", {o.value: o for o in Operation}, Operation.NONE, where, source)
    sizes = {key: _growth(table[key], where, key, source) for key in ("elements", "calls") if key in table}
    if sizes and (operation is Operation.NONE or ("elements" in sizes and not operation.moves_data)):
        raise FormatError(source, f"{where}: operation {operation.value!r} has no {next(iter(sizes))}")
    if not loops and operation is Operation.NONE:
        raise FormatError(source, f"{where}: it does nothing: give loops or an operation")
    return Function(name, work, Communication(operation, sizes.get("elements", ONCE), sizes.get("calls", ONCE)))


def _growth(value: object, where: str, key: str, source: object) -> Term:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise FormatError(source, f'{where}: {key}: {value!r} is not a growth; write a text such as "n^(3/2)*log2(p)"')
    try:
        growth = parse_growth(str(value))
        if exact_value(growth, _SMALLEST) <= _LARGEST_SIZE:
            return growth
    except ModelingError as error:
        raise FormatError(source, f"{where}: {key}: {error}") from None
    except OverflowError:
        pass
    raise FormatError(
        source, f"{where}: {key}: {value!r} is more than 2^62 at p=2 and n=2 already: nothing has that size"
    )


def _choice(
    table: Mapping[str, Any], key: str, known: Mapping[str, _Choice], default: _Choice, where: str, source: object
) -> _Choice:
    value = table.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or value not in known:
        raise FormatError(source, f"{where}: {key} {value!r} is unknown; choose one of: {', '.join(known)}")
    return known[value]
