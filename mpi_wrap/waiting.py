"""Where wrappers tell waiting from transfer: C text around the call of MPI (native/wait.c).

The text uses the operation's arguments by their names in the table, and `call.node`.
"""

from __future__ import annotations

from .table import Operation

BEGIN = "const uint64_t wait_begin = quipu_mpi_wait_begin(&call, {awaited});"
END = "const uint64_t wait_end = quipu_mpi_wait_end(&call);"

BLOCKING = {f"MPI_{name}" for name in ("Send", "Bsend", "Ssend", "Rsend", "Sendrecv", "Sendrecv_replace")}
PROBES = {"MPI_Probe", "MPI_Mprobe"}
RECEIVE = "MPI_Recv"


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
