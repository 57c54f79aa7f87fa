# SPDX-License-Identifier: Apache-2.0
"""Make linker names of C++ functions independent of the MPI library with which the program was built.

The type of an MPI handle, such as a communicator, is a part of the linker name of a function with such a parameter. The
type of a communicator is `struct ompi_communicator_t *` in Open MPI, `simgrid::smpi::Comm *` in SMPI (SimGrid's MPI)
and `int` in MPICH. The linker name therefore differs between builds. The headers of SMPI also define macros for
functions of the C library. These macros rename functions of the program: a method `free` becomes `smpi_shared_free`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_TABLE = (Path(__file__).parents[1] / "agent" / "runtime" / "smpi_names.def").read_text(encoding="utf-8")
_IN_SMPI = tuple(re.findall(r"^QUIPU_SMPI_HANDLE\((\w+)\)$", _TABLE, re.MULTILINE))
_SMPI = "PN7simgrid4smpi"
_MOST_DIGITS = 9  # largest number of digits of a number in linker names (lengths of identifiers, references to types)
_DIGITS = frozenset("0123456789")
_DIGITS_AND_LETTERS = _DIGITS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_STATUS = "ompi_status_public_t"
_RENAMED_BY_SMPI = dict(re.findall(r"^QUIPU_SMPI_RENAMED\((\w+), \d, (\w+)\)$", _TABLE, re.MULTILINE))


def common_linker_name(name: str) -> str:
    """Return a linker name that is equal for all MPIs, for comparisons only.

    The types of handles become int, as in MPICH. Functions that SMPI renamed get their original names. In names with
    handles, all references to a previous type (S_, S0_, …) become S_, because the types of handles change their
    numbers. agent/runtime/mpi_handles.cpp does the same (tests/native/test_mpi_handles.py compares both).
    """
    if not name.startswith("_Z") or not (_has_handles(name) or "smpi_" in name):
        return name
    return _text("".join(became for _, became in _parts(name)))


def of_any_build(name: str) -> str | None:
    """Return a pattern with * that matches the linker name of a function for every MPI; None if it is always the same.

    The pattern also matches some other functions: functions with the same name that differ only in handles or in
    references to previous types, and functions whose name ends like a name that SMPI renamed.
    """
    if common_linker_name(name) == name:
        return None
    pattern, shifted = "", _has_handles(name)
    for was, became in _parts(name):
        if became == was and not (shifted and was == "S_"):
            pattern += was
        else:
            pattern = pattern.removesuffix("*") + "*" + _RENAMED_BY_SMPI.get(was.lstrip("0123456789"), "")
    return _text(pattern)


def _has_handles(name: str) -> bool:
    """Return whether a linker name may contain handles of Open MPI or SMPI."""
    return "ompi_" in name or _SMPI in name


def _parts(name: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of a part of a linker name and its replacement.

    Each character of the result is one byte of the name in UTF-8, because lengths in linker names count bytes. Only
    ASCII bytes are replaced, so the joined result is valid UTF-8.
    """
    octets, at = name.encode("utf-8", "surrogatepass").decode("latin-1"), 0
    shifted = _has_handles(name)
    while at < len(octets):
        became, end = _next(octets, at, shifted)
        yield octets[at:end], became
        at = end


def _text(octets: str) -> str:
    """Return the text whose bytes are the characters of `octets`."""
    return octets.encode("latin-1").decode("utf-8", "surrogatepass")


def _next(name: str, at: int, shifted: bool) -> tuple[str, int]:
    """Return the replacement of the part of a linker name that begins at `at`, and the end of the part.

    shifted: whether the name contains handles, whose types change the numbers of references.
    """
    if name.startswith("PN", at):
        inside = at + len(_SMPI) if name.startswith(_SMPI, at) else _repetition(name, at + 2)
        word, end = _word(name, inside) if inside > at + 2 else ("", at)
        if word in _IN_SMPI and name[end : end + 1] == "E":
            return "i", end + 1
    if name[at] == "P":
        word, end = _word(name, at + 1)
        if word.startswith("ompi_") and word.endswith("_t") and word != _STATUS:
            return "i", end
    if (end := _repetition(name, at)) > at:
        return "S_" if shifted else name[at:end], end
    word, end = _word(name, at)
    if word in _RENAMED_BY_SMPI:
        own = _RENAMED_BY_SMPI[word]
        return f"{len(own)}{own}", end
    if word:
        return "10MPI_Status" if word == _STATUS else name[at:end], end
    return name[at], at + 1


def _word(name: str, at: int) -> tuple[str, int]:
    """Return the identifier at this position, which begins with its length, and its end; "" if there is none."""
    begin = at
    while name[begin : begin + 1] in _DIGITS and begin - at <= _MOST_DIGITS:
        begin += 1
    end = begin + int(name[at:begin]) if 0 < begin - at <= _MOST_DIGITS else len(name) + 1
    return (name[begin:end], end) if end <= len(name) else ("", at)


def _repetition(name: str, at: int) -> int:
    """Return the end of a reference to a previous type (S, a number in base 36, _); `at` if there is none."""
    end = at + 1
    while name[end : end + 1] in _DIGITS_AND_LETTERS and end - at <= _MOST_DIGITS:
        end += 1
    return end + 1 if name[at : at + 1] == "S" and name[end : end + 1] == "_" else at
