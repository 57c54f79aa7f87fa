# SPDX-License-Identifier: Apache-2.0
"""Generate the C statements around a call of MPI that measure how long the call waits (metric wait_time).

The statements call functions of native/wait.c or, under SMPI, of native/wait_smpi.c. They use the arguments of the
operation by their names in operations.toml, and `call.node`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .table import Operation

BEGIN = "const uint64_t wait_begin = quipu_mpi_wait_begin(&call, {awaited});"
END = "const uint64_t wait_end = quipu_mpi_wait_end(&call);"
NOW = "const uint64_t wait_begin = quipu_ticks();"

# Values of `waits_for` of collective operations, and the constants QUIPU_MPI_… for them in native/delays.h.
COLLECTIVE = {"all": "AWAITS_ALL", "root": "AWAITS_ROOT", "leaves": "ROOT_AWAITS"}
# Values of `waits_for` of operations whose waiting is computed from the duration of the call.
TIMED = ("sender", "receiver", "peers", "buffer", "message", "requests")


@dataclass
class Statements:
    """Lines of C before a call, after it, and after it only if it succeeded."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    success: list[str] = field(default_factory=list)


def transfer(operation: Operation, result: str = "result") -> Statements:
    """Return the statements around an operation that moves data. result: C text of its error code.

    The statements in `success` use the variables `sent` and `received` (bytes).
    """
    return Statements(before(operation), after(operation, result), success(operation))


def is_timed(operation: Operation) -> bool:
    """Return whether the wrapper reads the clock directly before (BEGIN) and directly after (END) the call."""
    return operation.waits_for in TIMED


def before(operation: Operation) -> list[str]:
    """Return the statements before the call."""
    if operation.waits_for in COLLECTIVE:
        return ["quipu_mpi_before_collective(call.node, comm);"]
    lines = []
    if operation.waits_for == "sender":
        size = "quipu_mpi_bytes(count, datatype)"
        lines.append(f"const bool awaited = quipu_mpi_before_receive(call.node, {size}, source, tag, comm);")
    awaited = "awaited" if lines else "false"
    return [*lines, BEGIN.format(awaited=awaited)] if is_timed(operation) else lines


def success(operation: Operation) -> list[str]:
    """Return the statements after a call that moved data and succeeded. They use `sent` and `received` (bytes)."""
    if operation.waits_for == "sender":
        return ["quipu_mpi_after_receive(call.node, awaited, wait_begin, wait_end, received);"]
    if is_timed(operation):
        return ["quipu_mpi_wait_between(call.node, wait_begin, wait_end, sent > received ? sent : received);"]
    return []


def completed(operation: Operation, completion: str) -> list[str]:
    """Return the statements after a call that completes requests. completion: C text of its quipu_mpi_completion."""
    if not is_timed(operation):
        return []
    return [f"quipu_mpi_wait_between(call.node, wait_begin, wait_end, {completion}.bytes);"]


def after(operation: Operation, result: str = "result") -> list[str]:
    """Return the statements right after the call, successful or not; `result` is the C text of its error code."""
    if operation.waits_for in COLLECTIVE:
        return [f"quipu_mpi_after_collective(comm, {result});"]
    return [END] if is_timed(operation) else []


def simulated_transfer(operation: Operation) -> Statements:
    """Return the statements for SMPI around an operation that moves data, or that starts or creates a request."""
    arguments = operation.arguments
    if operation.waits_for in COLLECTIVE:
        root, awaited = "root" if "root" in arguments else "-1", COLLECTIVE[operation.waits_for]
        return Statements(
            [NOW, f"quipu_mpi_arrive(comm, QUIPU_MPI_{awaited}, {root});"],
            [f"quipu_mpi_depart(call.node, comm, QUIPU_MPI_{awaited}, {root}, wait_begin);"],
        )
    if operation.waits_for == "message":
        return Statements([NOW], ["quipu_mpi_waited_all(call.node, wait_begin);"])
    if operation.kind not in ("point-to-point", "persistent") or "comm" not in arguments or "partitions" in arguments:
        return Statements()
    sides = [
        (receive, peer, tag if tag in arguments else "tag")
        for receive, peer, tag in (("false", "dest", "sendtag"), ("true", "source", "recvtag"))
        if peer in arguments and peer in (operation.to, operation.source)
    ]
    if operation.persistent and len(sides) == 1:
        receive, peer, tag = sides[0]
        return Statements(success=[f"quipu_mpi_message_planned(*request, {receive}, {peer}, {tag}, comm);"])
    if not sides or operation.persistent or (len(sides) > 1 and "request" in arguments):
        return Statements()
    names = ["message", "other"]
    posts = [
        f"struct quipu_mpi_message *{name} = quipu_mpi_message({receive}, {peer}, {tag}, comm);"
        for name, (receive, peer, tag) in zip(names, sides, strict=False)
    ]
    if "request" in arguments:
        return Statements(posts, success=["quipu_mpi_message_posted(*request, message);"])
    other = "other" if len(sides) > 1 else "NULL"
    return Statements([NOW, *posts], [f"quipu_mpi_waited_for(call.node, wait_begin, message, {other});"])


def simulated_window(window: str) -> Statements:
    """Return the statements for SMPI around a function in which all processes of a window wait for each other."""
    return Statements(
        [NOW, f"quipu_mpi_arrive_at_window({window});"],
        [f"quipu_mpi_depart_from_window(call.node, {window}, wait_begin);"],
    )


def simulated_start(count: str, requests: str) -> list[str]:
    """Return the statements for SMPI before a function that starts requests."""
    return [f"quipu_mpi_messages_started({count}, {requests});"]


def simulated_completion(operation: Operation, count: str, requests: str) -> Statements:
    """Return the statements for SMPI around a function that completes requests. count, requests: C text."""
    begin = "wait_begin" if is_timed(operation) else "0"
    return Statements(
        [
            "struct quipu_mpi_pending pending;",
            f"quipu_mpi_before_completion(&pending, {count}, {requests});",
            *([NOW] if is_timed(operation) else []),
        ],
        [f"quipu_mpi_after_completion(&pending, {requests}, call.node, {begin});"],
    )
