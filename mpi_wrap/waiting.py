"""Where wrappers tell waiting from transfer: C text around the call of MPI (native/wait.c, native/wait_smpi.c).

The text uses the operation's arguments by their names in the table, and `call.node`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .table import Operation

BEGIN = "const uint64_t wait_begin = quipu_mpi_wait_begin(&call, {awaited});"
END = "const uint64_t wait_end = quipu_mpi_wait_end(&call);"

BLOCKING = {f"MPI_{name}" for name in ("Send", "Bsend", "Ssend", "Rsend", "Sendrecv", "Sendrecv_replace")}
PROBES = {"MPI_Probe", "MPI_Mprobe"}
RECEIVE = "MPI_Recv"


@dataclass
class Around:
    """Statements before a call, after it, and after it if it succeeded."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    success: list[str] = field(default_factory=list)


def transfer(operation: Operation) -> Around:
    """Text around an operation that moves data; `sent` and `received` are its bytes where it succeeded."""
    return Around(before(operation), after(operation), success(operation))


def is_timed(operation: Operation) -> bool:
    """Whether the call itself is timed: BEGIN goes right before it, END right after it."""
    return _name(operation) in {*BLOCKING, *PROBES, RECEIVE} or is_wait(operation)


def is_wait(operation: Operation) -> bool:
    """Whether the operation waits for requests."""
    return operation.completes is not None and _name(operation).startswith("MPI_Wait")


def is_probed(operation: Operation) -> bool:
    """Whether it is a blocking collective operation of a whole communicator."""
    arguments = operation.arguments
    synchronous = "comm" in arguments and "request" not in arguments
    return operation.kind == "collective" and synchronous and not operation.name.startswith("MPI_Neighbor")


def before(operation: Operation) -> list[str]:
    """Statements before the call."""
    if is_probed(operation):
        return ["quipu_mpi_before_collective(call.node, comm);"]
    lines = []
    if _name(operation) == RECEIVE:
        size = "quipu_mpi_bytes(count, datatype)"
        lines.append(f"const bool awaited = quipu_mpi_before_receive(call.node, {size}, source, tag, comm);")
    awaited = "awaited" if lines else "false"
    return [*lines, BEGIN.format(awaited=awaited)] if is_timed(operation) else lines


def success(operation: Operation) -> list[str]:
    """Statements after a call that moved data and succeeded; `sent` and `received` are its bytes."""
    if _name(operation) == RECEIVE:
        return ["quipu_mpi_after_receive(call.node, awaited, wait_begin, wait_end, received);"]
    if is_timed(operation):
        return ["quipu_mpi_wait_between(call.node, wait_begin, wait_end, sent > received ? sent : received);"]
    return []


def completed(operation: Operation, completion: str) -> list[str]:
    """Statements after a call that completes requests; `completion` is the variable that collects them."""
    if not is_wait(operation):
        return []
    return [f"quipu_mpi_wait_between(call.node, wait_begin, wait_end, {completion}.bytes);"]


def after(operation: Operation) -> list[str]:
    """Statements right after the call, whether it succeeded or not."""
    return [END] if is_timed(operation) else []


def _name(operation: Operation) -> str:
    return operation.name.removesuffix("_c")


NOW = "const uint64_t wait_begin = quipu_ticks();"
FROM_ROOT = {"MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"}
TO_ROOT = {"MPI_Reduce", "MPI_Gather", "MPI_Gatherv"}


def simulated_transfer(operation: Operation) -> Around:
    """Text around an operation that moves data or posts or makes a request, under SMPI."""
    arguments = operation.arguments
    if is_probed(operation):
        root = "root" if "root" in arguments else "-1"
        awaited = "ROOT_AWAITS" if operation.name in TO_ROOT else "AWAITS_ROOT"
        if operation.name not in TO_ROOT | FROM_ROOT:
            awaited = "AWAITS_ALL"
        return Around(
            [NOW, f"quipu_mpi_arrive(comm, {root});"],
            [f"quipu_mpi_depart(call.node, comm, QUIPU_MPI_{awaited}, {root}, wait_begin);"],
        )
    if operation.name in PROBES:
        return Around([NOW], ["quipu_mpi_waited_all(call.node, wait_begin);"])
    if operation.kind not in ("point-to-point", "persistent") or "comm" not in arguments or "partitions" in arguments:
        return Around()
    sides = [
        (receive, peer, tag if tag in arguments else "tag")
        for receive, peer, tag in (("false", "dest", "sendtag"), ("true", "source", "recvtag"))
        if peer in arguments and peer in (operation.to, operation.source)
    ]
    if operation.persistent and len(sides) == 1:
        receive, peer, tag = sides[0]
        return Around(success=[f"quipu_mpi_message_planned(*request, {receive}, {peer}, {tag}, comm);"])
    if not sides or operation.persistent or (len(sides) > 1 and "request" in arguments):
        return Around()
    names = ["message", "other"]
    posts = [
        f"struct quipu_mpi_message *{name} = quipu_mpi_message({receive}, {peer}, {tag}, comm);"
        for name, (receive, peer, tag) in zip(names, sides, strict=False)
    ]
    if "request" in arguments:
        return Around(posts, success=["quipu_mpi_message_posted(*request, message);"])
    other = "other" if len(sides) > 1 else "NULL"
    return Around([NOW, *posts], [f"quipu_mpi_waited_for(call.node, wait_begin, message, {other});"])


def simulated_start(count: str, requests: str) -> list[str]:
    """Statements before a function that starts requests, under SMPI."""
    return [f"quipu_mpi_messages_started({count}, {requests});"]


def simulated_completion(operation: Operation, count: str, requests: str) -> Around:
    """Text around a function that completes requests, under SMPI."""
    begin = "wait_begin" if is_wait(operation) else "0"
    return Around(
        [
            "struct quipu_mpi_pending pending;",
            f"quipu_mpi_before_completion(&pending, {count}, {requests});",
            *([NOW] if is_wait(operation) else []),
        ],
        [f"quipu_mpi_after_completion(&pending, {requests}, call.node, {begin});"],
    )
