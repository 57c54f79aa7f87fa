# SPDX-License-Identifier: Apache-2.0
"""Shorten names of regions and call paths: remove the least informative parts first, and keep names distinct.

Widths are numbers of columns of a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import product, takewhile

from rich.cells import cell_len

_ARROW = re.compile(r"(?<!operator)->")
_OPERATOR = re.compile(r"\boperator\s*(\(\)|\[\]|->\*?|[^\w\s(]+)")
_SUFFIX = re.compile(r" \((?:omp|lambda|line)[^()]*\)$")
_MPI = re.compile(r"P?MPI_[A-Z]")
_CLOSING = {"(": ")", "<": ">"}
ELLIPSIS = "…"
IN_TEXT = 60
"""Largest width of a name or a call path in a sentence (columns)."""
_NARROWEST = 8
_LEAST_PART = 6  # least number of columns of a shortened name next to another one
_LONGEST = 10_000


def shorten(text: str, width: int, ellipsis: str = ELLIPSIS) -> str:
    """Return the name of a region, or a call path (`main->solve`), in at most `width` columns.

    Parts are removed in this order until the name fits: the result type and the arguments of a C++ function, its
    template arguments, its scopes (of a Fortran procedure the module). For example, `void fe::solve<Matrix>(Matrix&)`
    becomes `fe::solve<…>(…)`, `…solve<…>(…)`, `…solve`. Then steps of a call path are removed, from the root on, and
    the root last. An operation of MPI keeps its caller, which identifies it better than the root. If the last step is
    still too long, an ellipsis replaces its middle.
    """
    if cell_len(text) <= width:
        return text
    if len(text) > _LONGEST:  # the following steps need time proportional to length²
        text = elide(text, _LONGEST, ellipsis)
    names = _ARROW.split(text)
    for step in _STEPS:
        names = [step(name, ellipsis) for name in names]
        if cell_len(short := "->".join(names)) <= width:
            return short
    for fewer in _without_steps(names, width, ellipsis):
        if cell_len(fewer) <= width:
            return fewer
        short = fewer
    body, suffix = _parts(short)
    room = width - cell_len(suffix)
    return elide(body, room, ellipsis) + suffix if room >= _NARROWEST else elide(short, width, ellipsis)


def _without_steps(names: Sequence[str], width: int, ellipsis: str) -> Iterator[str]:
    """Yield shorter and shorter call paths, without steps after the root; an operation of MPI keeps its caller."""
    cut = ellipsis
    with_caller = len(names) > 2 and _MPI.match(names[-1]) is not None
    for first in range(2, len(names) - with_caller):
        yield "->".join((names[0], cut, *names[first:]))
    if with_caller:
        caller = names[-2].removeprefix(cut)
        yield f"{cut}->{names[-2]}->{names[-1]}"
        yield f"{cut}{caller}->{names[-1]}"
        room = width - cell_len(f"{cut}->->{names[-1]}")
        if room >= _NARROWEST:
            yield f"{cut}->{elide(caller, room, ellipsis)}->{names[-1]}"
    if len(names) > 2:
        yield "->".join((names[0], cut, names[-1]))
    if len(names) > 1:
        yield f"{cut}->{names[-1]}"
        yield cut + names[-1].removeprefix(cut)


def shorten_apart(texts: Sequence[str], width: int, ellipsis: str = ELLIPSIS) -> list[str]:
    """Return names or call paths in at most `width` columns each. Distinct texts remain distinct if possible.

    Call paths with equal short forms keep a step in which they differ: `main->…->solve_a->…->MPI_Wait`.
    """
    short = [shorten(text, width, ellipsis) for text in texts]
    alike: dict[str, set[str]] = {}
    for text, own in zip(texts, short, strict=True):
        alike.setdefault(own, set()).add(text)
    apart = {text: own for group in alike.values() if len(group) > 1 for text, own in _apart(group, width, ellipsis)}
    return [apart.get(text, own) for text, own in zip(texts, short, strict=True)]


def _apart(group: Collection[str], width: int, ellipsis: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of a call path of a group and a distinct short form, if it fits.

    A second step distinguishes call paths that still have the same short form, for example functions that differ only
    in their arguments.
    """
    paths = _told_apart({text: _ARROW.split(text) for text in group if len(text) <= _LONGEST}, ellipsis)
    found = _distinguished(paths, width, ellipsis, whole_names=True)
    alike: dict[str, list[str]] = {}
    for text, own in found.items():
        alike.setdefault(own, []).append(text)
    for own, texts in alike.items():
        if len(texts) == 1:
            yield texts[0], own
        elif len(texts) < len(paths):
            yield from _apart(texts, width, ellipsis)
        else:
            yield from _distinguished(paths, width, ellipsis, whole_names=False).items()


def _distinguished(paths: dict[str, list[str]], width: int, ellipsis: str, whole_names: bool) -> dict[str, str]:
    """Return the short form of each call path, with a step in which it differs from the others, if the form fits.

    paths: the names of the steps of each call path. whole_names: shorten long names in the middle; otherwise omit their
    beginnings, which are equal.
    """
    first, last = _common(list(paths.values())), _common([names[::-1] for names in paths.values()])
    middles = {text: range(first, len(steps) - last) for text, steps in paths.items()}
    theirs = [paths[text][middle[-1]] for text, middle in middles.items() if middle]
    begin = 0 if whole_names else _common(theirs)
    found = {}
    for text, middle in middles.items():
        if not middle:
            continue
        steps = paths[text]
        tried = (_of_steps(steps, kept, ellipsis) for kept in product(((0,), ()), (middle[-1], middle[0])))
        own = next((own for own in tried if cell_len(own) <= width), None)
        own = own or _of_parts(steps, middle[-1], width, ellipsis, begin)
        if own is not None:
            found[text] = own
    return found


def _told_apart(paths: dict[str, list[str]], ellipsis: str) -> dict[str, list[str]]:
    """Return the call paths with the shortest forms of their steps that still distinguish the call paths."""
    apart = paths
    for step in _STEPS:
        paths = {text: [step(name, ellipsis) for name in names] for text, names in paths.items()}
        for tried in (paths, {text: [_bare(name, ellipsis) for name in own] for text, own in paths.items()}):
            if len(set(map(tuple, tried.values()))) == len(tried):
                apart = tried
    return apart


def _of_parts(steps: Sequence[str], theirs: int, width: int, ellipsis: str, begin: int) -> str | None:
    """Return a call path with a part of the distinguishing step and (a part of) the last step; None if it does not fit.

    begin: begin of the part in the distinguishing step.
    """
    cut = ellipsis
    before, own, last = cut + "->" if theirs else "", steps[theirs].removeprefix(cut), steps[-1]
    if begin > len(steps[theirs]) - len(own):
        before, own = _from(steps[theirs], begin, before, width, ellipsis)
    if theirs == len(steps) - 1:
        room = width - cell_len(before)
        return before + elide(own, room, ellipsis) if room >= _NARROWEST else None
    joint = "->" if theirs == len(steps) - 2 else f"->{cut}->"
    room = width - cell_len(before + joint)
    if room < 2 * _LEAST_PART:
        return None
    first = min(cell_len(own), max(_LEAST_PART, room - cell_len(last)))
    return before + elide(own, first, ellipsis) + joint + elide(last, room - first, ellipsis)


def _from(name: str, begin: int, before: str, width: int, ellipsis: str) -> tuple[str, str]:
    """Return the text before a name, and the name without its first `begin` characters.

    If only the arguments of a function differ, the name of the function remains if it fits: `…->solve(…, int)`.
    Otherwise the text before is "".
    """
    called = whole = _without_signature(name, ellipsis).removesuffix(f"({ellipsis})")
    for step in _STEPS:
        called = step(called, ellipsis)
    called, arguments = called.removeprefix(ellipsis), f"({ellipsis}{name[begin:]}"
    if f"{whole}(" in name[:begin] and cell_len(before + called + arguments) <= width:
        return before, called + arguments
    return "", ellipsis + name[begin:]


def _common(paths: Sequence[Sequence[str]]) -> int:
    """Return the number of equal steps at the beginning of all these paths; for names, of equal characters."""
    return sum(1 for _ in takewhile(lambda steps: len(set(steps)) == 1, zip(*paths, strict=False)))


def _of_steps(steps: Sequence[str], kept: tuple[tuple[int, ...], int], ellipsis: str) -> str:
    """Return a call path with the steps of the numbers `kept`, and the last step; an ellipsis replaces other steps."""
    shown = sorted({*kept[0], kept[1], len(steps) - 1})
    parts = [] if shown[0] == 0 else [ellipsis]
    for before, now in zip([shown[0] - 1, *shown], shown, strict=False):
        parts += [*([ellipsis] if now > before + 1 else []), steps[now]]
    return "->".join(parts)


def plain_names(name: str) -> tuple[str, str]:
    """Return the plain name of a function with its scopes, and without them: `fe::solve`, `solve`.

    Result type, template arguments, arguments and additions such as ` (omp line 7)` are removed.
    """
    for step in (_without_signature, _without_templates, _bare):
        name = step(name, ELLIPSIS)
    qualified = _parts(name)[0]
    return qualified, qualified[_last_part(qualified) :]


def _without_signature(name: str, ellipsis: str) -> str:
    """Return a name without result type and arguments: `int f<A>(B, C) const` → `f<A>(…)`."""
    body, suffix = _parts(name)
    if not body.endswith(")") and not re.search(r"\)( const| volatile| &{1,2})+$", body):
        return name
    body = re.sub(r"( const| volatile| &{1,2})+$", "", _fold(body, "(", ellipsis))
    body = re.sub(r"\[abi:\w+\]", "", body)
    return body[_result_ends(body) :] + suffix


def _without_templates(name: str, ellipsis: str) -> str:
    body, suffix = _parts(name)
    return _fold(body, "<", ellipsis) + suffix


def _within_scope(name: str, ellipsis: str) -> str:
    """Return a name with only its innermost scope: `a::b::f<…>(…)` → `…b::f<…>(…)`."""
    body, suffix = _parts(name)
    starts = _part_starts(body)
    return ellipsis + body[starts[-2] :] + suffix if len(starts) > 2 else name


def _without_scopes(name: str, ellipsis: str) -> str:
    """Return a name without scopes: `a::b::f<…>(…)` → `…f<…>(…)`."""
    body, suffix = _parts(name)
    at = _last_part(body)
    return ellipsis + body[at:].removeprefix(ellipsis) + suffix if at else name


def _bare(name: str, ellipsis: str) -> str:
    body, suffix = _parts(name)
    return body.replace(f"({ellipsis})", "").replace(f"<{ellipsis}>", "") + suffix


_STEPS: tuple[Callable[[str, str], str], ...] = (
    _without_signature,
    _without_templates,
    _within_scope,
    _without_scopes,
    _bare,
)


def _parts(name: str) -> tuple[str, str]:
    """Return a name without its addition (such as ` (omp line 7)`), and the addition."""
    found = _SUFFIX.search(name)
    return (name[: found.start()], found.group()) if found else (name, "")


@lru_cache(maxsize=4096)
def _depths(text: str, brackets: str) -> tuple[int, ...]:
    """Return for each character the number of open brackets before it. Brackets in names of operators do not count.

    brackets: the opening ones, then the closing ones.
    """
    operators = {at for found in _OPERATOR.finditer(text) for at in range(found.start(), found.end())}
    depth, depths = 0, []
    for at, character in enumerate(text):
        if at not in operators and character in brackets[len(brackets) // 2 :] and depth:
            depth -= 1
        depths.append(depth)
        if at not in operators and character in brackets[: len(brackets) // 2]:
            depth += 1
    return tuple(depths)


def _fold(text: str, opening: str, ellipsis: str) -> str:
    """Replace the content of outermost brackets by an ellipsis.

    Exceptions: `()`, `(anonymous namespace)` and `a.<locals>.<lambda>` of Python. opening: the bracket, ( or <.
    """
    brackets = opening + _CLOSING[opening]
    depths = _depths(text, brackets)
    folded, at = "", 0
    while at < len(text):
        end = at + 1
        if depths[at] == 0 and text[at] == opening and end < len(text) and depths[end] == 1:
            while end < len(text) and depths[end] > 0:
                end += 1
            inside = text[at + 1 : end]
            of_python = opening == "<" and text[:at][-1:] in ("", ".")
            kept = inside in ("", "anonymous namespace") or of_python
            folded += f"{opening}{inside if kept else ellipsis}{text[end : end + 1]}"
            at = end + 1
        else:
            folded += text[at]
            at += 1
    return folded


def _result_ends(text: str) -> int:
    """Return the position where the name of a function begins, after its result type."""
    depths = _depths(text, "(<{)>}")
    stop = found.start() if (found := _OPERATOR.search(text)) else len(text)
    stop = min(stop, found.start()) if (found := re.search(r"\boperator ", text)) else stop
    spaces = [at for at in range(stop) if text[at] == " " and depths[at] == 0]
    return spaces[-1] + 1 if spaces else 0


def _part_starts(text: str) -> list[int]:
    """Return the positions where the parts of a qualified name begin: 0, 3 and 6 in `a::b::f`."""
    depths = _depths(text, "(<{)>}")
    return [0, *(at + 2 for at in range(len(text) - 2) if text[at : at + 2] == "::" and depths[at] == 0)]


def _last_part(text: str) -> int:
    """Return the position where the last part of a qualified name begins; that of an operator includes its class."""
    starts = _part_starts(text)
    return starts[-2] if len(starts) > 1 and text.startswith("operator", starts[-1]) else starts[-1]


def elide(text: str, width: int, ellipsis: str = ELLIPSIS) -> str:
    """Return `text` in at most `width` columns; an ellipsis replaces the middle of a longer text."""
    if cell_len(text) <= width:
        return text
    room = width - len(ellipsis)
    if room < 2:
        return _head(text, width)
    tail = room // 2
    return _head(text, room - tail) + ellipsis + _head(text[::-1], tail)[::-1]


def _head(text: str, width: int) -> str:
    taken = 0
    for at, character in enumerate(text):
        taken += cell_len(character)
        if taken > width:
            return text[:at]
    return text
