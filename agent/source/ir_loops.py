# SPDX-License-Identifier: Apache-2.0
"""Find the natural loops in the control flow graph of a function of LLVM IR, and their trip counts if constant.

The dominators are computed as in K. D. Cooper, T. J. Harvey, K. Kennedy, A Simple, Fast Dominance Algorithm, 2001,
figure 3. Blocks are numbered in the order of the function; block 0 is its entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .ir_text import Block, Instruction, IrFunction, unquoted

_NAME = r'(?:"(?:[^"\\]|\\.)*"|[-$._\w]+)'
_PHI = re.compile(rf"\[ ([^,\]]+), %({_NAME}) \]")
_STEP = re.compile(rf"^(add|sub)(?: nuw| nsw)* i\d+ %({_NAME}), (-?\d+)")
_COMPARE = re.compile(rf"^icmp(?: samesign)? (\w+) i(\d+) (%{_NAME}|-?\d+), (%{_NAME}|-?\d+)")
_CONDITION = re.compile(rf"^br i1 %({_NAME}), label %({_NAME}), label %({_NAME})")
_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__,
    "ne": int.__ne__,
    **dict.fromkeys(("slt", "ult"), int.__lt__),
    **dict.fromkeys(("sle", "ule"), int.__le__),
    **dict.fromkeys(("sgt", "ugt"), int.__gt__),
    **dict.fromkeys(("sge", "uge"), int.__ge__),
}
_SWAPPED = {
    "slt": "sgt",
    "sgt": "slt",
    "sle": "sge",
    "sge": "sle",
    "ult": "ugt",
    "ugt": "ult",
    "ule": "uge",
    "uge": "ule",
}
_INVERSE = {
    "slt": "sge",
    "sge": "slt",
    "sgt": "sle",
    "sle": "sgt",
    "ult": "uge",
    "uge": "ult",
    "ugt": "ule",
    "ule": "ugt",
    "eq": "ne",
    "ne": "eq",
}


@dataclass(frozen=True)
class IrLoop:
    """A natural loop.

    header: number of its header block. depth: 1 if the loop is not inside of another one. blocks: numbers of all blocks
    of the loop. trips: how often the body is executed each time the loop is entered; None if this is not a constant.
    """

    header: int
    depth: int
    blocks: frozenset[int]
    trips: int | None


def loops_of(function: IrFunction) -> list[IrLoop]:
    """Return the loops of a function in the order of their headers."""
    number = {block.name: place for place, block in enumerate(function.blocks)}
    successors = [
        [number[name] for name in block.instructions[-1].targets if name in number] if block.instructions else []
        for block in function.blocks
    ]
    if not successors:
        return []
    order = _postorder(successors)
    dominator = _dominators(successors, order)
    bodies: dict[int, set[int]] = {}
    predecessors: list[list[int]] = [[] for _ in successors]
    for block in order:
        for target in successors[block]:
            predecessors[target].append(block)
    for block in order:
        for header in successors[block]:
            if _dominates(dominator, header, block):
                bodies.setdefault(header, {header}).update(_body(header, block, predecessors))
    return [
        IrLoop(
            header,
            sum(header in other for other in bodies.values()),
            frozenset(body),
            _trips(function, header, body, successors, predecessors),
        )
        for header, body in sorted(bodies.items())
    ]


def _postorder(successors: list[list[int]]) -> list[int]:
    """Return the blocks that are reachable from block 0, in postorder: a block follows its successors, except in loops.

    successors: numbers of the successors of each block.
    """
    order, seen = [], {0}
    stack = [(0, iter(successors[0]))]
    while stack:
        block, rest = stack[-1]
        for target in rest:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(successors[target])))
                break
        else:
            order.append(block)
            stack.pop()
    return order


def _dominators(successors: list[list[int]], order: list[int]) -> dict[int, int]:
    """Return the immediate dominator of each block; block 0 for itself. order: the blocks in postorder."""
    place = {block: number for number, block in enumerate(order)}
    before: dict[int, list[int]] = {block: [] for block in order}
    for block in order:
        for target in successors[block]:
            before[target].append(block)
    dominator = {0: 0}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [other for other in before[block] if other in dominator]
            new = known[0]
            for other in known[1:]:
                new = _common(dominator, place, other, new)
            if dominator.get(block) != new:
                dominator[block] = new
                changed = True
    return dominator


def _common(dominator: dict[int, int], place: dict[int, int], a: int, b: int) -> int:
    """Return the nearest common dominator of two blocks (`intersect` in the paper). place: position in postorder."""
    while a != b:
        while place[a] < place[b]:
            a = dominator[a]
        while place[b] < place[a]:
            b = dominator[b]
    return a


def _dominates(dominator: dict[int, int], above: int, block: int) -> bool:
    while block not in (above, 0):
        block = dominator[block]
    return block == above


def _body(header: int, latch: int, predecessors: list[list[int]]) -> set[int]:
    """Return the blocks of the loop that a branch from the block `latch` back to the header closes."""
    body, stack = {header}, [latch]
    while stack:
        block = stack.pop()
        if block not in body:
            body.add(block)
            stack += predecessors[block]
    return body


def _trips(
    function: IrFunction, header: int, body: set[int], successors: list[list[int]], predecessors: list[list[int]]
) -> int | None:
    """Return the trip count of a loop; None if it is not a constant or the loop has another form.

    The loop must have one exit, at its header or its end, that compares an integer counter with a constant.
    """
    exits = [block for block in body if any(target not in body for target in successors[block])]
    latches = [block for block in predecessors[header] if block in body]
    at_end = exits == latches
    if len(exits) != 1 or len(latches) != 1 or not (at_end or exits == [header]):
        return None
    values = {one.result: one for block in body for one in function.blocks[block].instructions if one.result}
    leaves = function.blocks[exits[0]].instructions[-1]
    condition = _CONDITION.match(leaves.text)
    compare = _COMPARE.match(values[name].text) if condition and (name := unquoted(condition[1])) in values else None
    if condition is None or compare is None:
        return None
    predicate, width, left, right = compare.groups()
    if re.fullmatch(r"-?\d+", left):
        predicate, left, right = _SWAPPED.get(predicate, predicate), right, left
    number = {block.name: place for place, block in enumerate(function.blocks)}
    if number.get(unquoted(condition[2])) not in body:
        predicate = _INVERSE[predicate]
    if not re.fullmatch(r"-?\d+", right) or not left.startswith("%"):
        return None
    counter = _counter(function.blocks[header], unquoted(left[1:]), values, latches[0], number)
    if counter is None:
        return None
    start, step, after = counter
    end = int(right)
    if predicate.startswith("u") and (start < 0 or end < 0):
        return None
    return _count(start + step if after else start, step, predicate, end, int(width), at_end)


def _counter(
    header: Block, name: str, values: dict[str, Instruction], latch: int, number: dict[str, int]
) -> tuple[int, int, bool] | None:
    """Return the initial value of the counter of a loop, its step, and whether `name` is its value after the step.

    name: the compared value. values: instructions of the loop by the name of their result. latch: the block that
    branches back to the header. number: numbers of blocks by name. The result is None if `name` is no such counter.
    """
    for phi in header.instructions:
        if phi.opcode != "phi":
            return None
        into = {number.get(unquoted(block)): value.strip() for value, block in _PHI.findall(phi.text)}
        begins = [value for block, value in into.items() if block != latch]
        goes_on = [value for block, value in into.items() if block == latch]
        if len(set(begins)) != 1 or len(goes_on) != 1 or not goes_on[0].startswith("%"):
            continue
        following = unquoted(goes_on[0][1:])
        step = _STEP.match(values[following].text) if following in values else None
        if step is None or unquoted(step[2]) != phi.result or not re.fullmatch(r"-?\d+", begins[0]):
            continue
        if name in (phi.result, following):
            return int(begins[0]), int(step[3]) * (-1 if step[1] == "sub" else 1), name == following
    return None


def _count(value: int, step: int, predicate: str, end: int, width: int, at_end: bool) -> int | None:
    """Return the number of iterations of a loop that continues while `value predicate end` is true.

    value: the first compared value, which grows by `step` per iteration. width: bits of the counter. at_end: whether
    the body runs before the first comparison. The result is None if the loop ends only after an overflow, or never.
    """
    holds = _HOLDS[predicate]
    if not holds(value, end):
        return 1 if at_end else 0
    if step == 0:
        return None
    if predicate == "ne":
        times, rest = divmod(end - value, step)
        if rest or times < 0:
            return None
    elif predicate == "eq":
        times = 1
    else:
        distance = end - value
        if (distance > 0) != (step > 0) and distance:
            return None
        strict = predicate in ("slt", "ult", "sgt", "ugt")
        times = -(-abs(distance) // abs(step)) if strict else abs(distance) // abs(step) + 1
    return times + at_end if times < 1 << (width - 1) else None
