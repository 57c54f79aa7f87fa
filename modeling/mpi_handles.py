"""Linker names of C++ functions without what they say of the MPI they were built for.

A communicator is a `struct ompi_communicator_t *` for Open MPI, a `simgrid::smpi::Comm *` for SMPI and an `int` for
MPICH, so that a function that takes one has another linker name in each build of a program.
"""

from __future__ import annotations

from collections.abc import Iterator

_IN_SMPI = ("Comm", "Datatype", "Errhandler", "File", "Group", "Info", "Op", "Request", "Win")
_SMPI = "PN7simgrid4smpi"
_MOST_DIGITS = 9  # of numbers in linker names: lengths of identifiers and repetitions
_DIGITS = frozenset("0123456789")
_DIGITS_AND_LETTERS = _DIGITS | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_STATUS = "ompi_status_public_t"


def built_alike(name: str) -> str:
    """Return a linker name as every MPI's build of the function has it: handles are integers, like MPICH's.

    Names without handles stay. In the others all repetitions of a type (S_, S0_, …) become S_, as handles of
    different types shift their numbers. The result is for comparing only. agent/runtime/mpi_handles.cpp does the same
    (tests/native/test_mpi_handles.py).
    """
    if not name.startswith("_Z") or ("ompi_" not in name and _SMPI not in name):
        return name
    return _text("".join(became for _, became in _parts(name)))


def of_any_build(name: str) -> str | None:
    """Return a pattern (with *) that fits the linker name of a function in every MPI's build; None without handles.

    It fits other functions only where they have the same name and differ in handles, or in types that are repeated.
    """
    if built_alike(name) == name:
        return None
    pattern = ""
    for was, became in _parts(name):
        pattern = pattern.removesuffix("*") + "*" if became != was or was == "S_" else pattern + was
    return _text(pattern)


def _parts(name: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a linker name and what they become; a character is a byte, as lengths in the name count these.

    Only bytes of ASCII become others, so that what comes of the parts is UTF-8 again.
    """
    octets, at = name.encode("utf-8", "surrogatepass").decode("latin-1"), 0
    while at < len(octets):
        became, end = _next(octets, at)
        yield octets[at:end], became
        at = end


def _text(octets: str) -> str:
    """Return the text of which `octets` has one byte a character."""
    return octets.encode("latin-1").decode("utf-8", "surrogatepass")


def _next(name: str, at: int) -> tuple[str, int]:
    """Return what the next part of a linker name becomes, and where it ends."""
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
        return "S_", end
    word, end = _word(name, at)
    if word:
        return "10MPI_Status" if word == _STATUS else name[at:end], end
    return name[at], at + 1


def _word(name: str, at: int) -> tuple[str, int]:
    """Return the identifier that stands here after its length, and its end; "" if there is none."""
    begin = at
    while name[begin : begin + 1] in _DIGITS and begin - at <= _MOST_DIGITS:
        begin += 1
    end = begin + int(name[at:begin]) if 0 < begin - at <= _MOST_DIGITS else len(name) + 1
    return (name[begin:end], end) if end <= len(name) else ("", at)


def _repetition(name: str, at: int) -> int:
    """Return where a repetition of a type (S, a number in base 36, _) ends; `at` if there is none."""
    end = at + 1
    while name[end : end + 1] in _DIGITS_AND_LETTERS and end - at <= _MOST_DIGITS:
        end += 1
    return end + 1 if name[at : at + 1] == "S" and name[end : end + 1] == "_" else at
