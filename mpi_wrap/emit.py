# SPDX-License-Identifier: Apache-2.0
"""Generate the C text of the wrapper of one C function of MPI.

The row of the function in operations.toml determines which bytes and messages the wrapper counts. The generated text
calls the functions that native/quipu_mpi.h declares.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from quipu.modeling.errors import MeasurementError
from quipu.modeling.mpi_operations import Completes, operation_of

from . import waiting
from .expression import Types
from .prototypes import Function
from .table import Operation
from .waiting import Statements

GROUP_OF = {"comm": "quipu_mpi_group_of", "win": "quipu_mpi_group_of_win", "file": "quipu_mpi_group_of_file"}
# Statements in the functions that begin or end MPI, by the value of the key `begins` or `ends` in operations.toml.
# {2} is the argument with index 2.
BEFORE_END = {
    "job": ["quipu_mpi_report_partners();", "quipu_flush();"],
    "mpi": ["quipu_mpi_report_partners();", "quipu_mpi_end_probes();", "quipu_mpi_reduce_at_end();"],
    "session": ["quipu_mpi_report_partners();"],
}
AFTER_BEGIN = {"mpi": ["quipu_mpi_initialized();"], "session": ["quipu_mpi_session_begun({2});"]}
AFTER_END = {"mpi": ["quipu_mpi_finalized();"], "session": ["quipu_mpi_session_ended();"]}
WORLD_RANK_IN = {"comm": "quipu_mpi_world_rank_in_comm", "win": "quipu_mpi_world_rank_in_win"}
# Functions that free an object. MPI may give the handle of this object to a new object later.
ENDS_OF_HANDLES = ("MPI_Comm_free", "MPI_Comm_disconnect", "MPI_Win_free")
# Functions that describe a process grid: argument 1 is the number of dimensions, argument 2 the extents (counted from
# 0). The value is the index of the argument with the periodic dimensions; None if there is none.
GRIDS = {"MPI_Cart_create": 3, "MPI_Dims_create": None}
# C text for the bytes of `count` elements of `datatype`.
ELEMENTS = "quipu_mpi_bytes(count, datatype)"

# Functions for which SMPI (the MPI of SimGrid) simulates no duration. Their real duration counts as computation.
_LOCAL = re.compile(
    r"MPI_(Type|Op|Info|Group|Errhandler|Error|Status|Attr|Keyval|T|Query|Is_thread|Add_error|Alloc|Free|Get)_"
    r"|_(rank|size|name|coords|shift|neighbors|neighbors_count|keyval|attr|errhandler|compare|group|inter|test|get|map)$"
    r"|MPI_(Initialized|Finalized|Address|Init|Init_thread|Dims_create)$"
)


def types_in_c(name: str) -> str:
    """Return C text of type `struct quipu_mpi_types` for the argument `name`: a datatype, or an array of datatypes."""
    return f"(struct quipu_mpi_types){{.{'each' if name.endswith('types') else 'all'} = {name}}}"


def wrapper(function: Function, operation: Operation | None, *, simulated: bool = False) -> str:
    """Return the C text of the wrapper of one function. Without an operation, the wrapper counts only visits and time.

    simulated: the wrapper is for SMPI and uses simulated time. A preloaded library cannot replace a function of SMPI by
    defining the same name (native/tables.c). The wrapper therefore has another name and calls the function of SMPI.

    Raises MeasurementError if mpi.h and operations.toml give the function different numbers of arguments.
    """
    names = argument_names(function, operation)
    parameters = ", ".join(parameter.declare(name) for parameter, name in zip(function.parameters, names, strict=True))
    call = f"{function.name if simulated else following(function.name)}({', '.join(names)})"
    takes_time = simulated and not _LOCAL.search(function.name)
    if operation is None:
        parts = window_waits(function, names) if simulated else Statements()
    elif operation.completes is not None:
        parts = completion(operation.completes, operation, simulated=simulated)
    else:
        parts = transfer(operation, types_in_c, simulated=simulated)
        if waits_in_call(operation):
            parts.before[:0] = [
                "MPI_Status own_status;",
                "if (status == MPI_STATUS_IGNORE)",
                "    status = &own_status;",
            ]
    around = begin_and_end(function.name, names)
    success = [*around.success, *parts.success]
    inner = [*around.before, *parts.before]
    inner.append(f"result = {call};")
    if takes_time:
        inner.append("quipu_mpi_simulated();")
    inner += parts.after
    if success:
        inner += ["if (result == MPI_SUCCESS) {", *(f"    {line}" for line in success), "}"]
    lines = [
        *handle_ends(function.name),
        "if (!quipu_mpi_outermost())",
        f"    return {call};",
        "int result;",
        *(["quipu_mpi_compute();"] if takes_time else []),
        "{",
        f"    {'QUIPU_MPI_RARE_CALL' if operation is None else 'QUIPU_MPI_CALL'}(&{region(function.name)});",
        *(f"    {line}" for line in inner),
        "}",
        *around.after,
        "return result;",
    ]
    define = f'struct quipu_region {region(function.name)} = {{.name = "{function.name}", .kind = QUIPU_MPI}};\n'
    if not simulated:
        define += f"static __typeof__(P{function.name}) *{following(function.name)} = P{function.name};\n"
    parameters = parameters or "void"
    name = f"static int {replacement(function.name)}" if simulated else f"QUIPU_EXPORT int {function.name}"
    if operation is None or simulated or not is_exchange_of_equals(operation):
        return define + c_function(f"{name}({parameters})", lines)
    other = f"any_{function.name}"
    usual = usual_call(call, f"{other}({', '.join(names)})", region(function.name))
    signature = f"QUIPU_RARELY static int {other}({parameters})"
    return define + c_function(signature, lines) + c_function(f"{name}({parameters})", usual)


def window_waits(function: Function, names: Sequence[str]) -> Statements:
    """Return statements that measure the waiting under SMPI in a function that synchronizes all processes of a window.

    For other functions there are no statements.
    """
    known = operation_of(function.name)
    windows = [name for name, own in zip(names, function.parameters, strict=True) if own.type.strip() == "MPI_Win"]
    waits = known is not None and known.waits_for == "all" and len(windows) == 1
    return waiting.simulated_window(windows[0]) if waits else Statements()


def c_function(signature: str, lines: Sequence[str]) -> str:
    """Return the text of a function."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"{signature} {{\n{body}\n}}\n"


def is_exchange_of_equals(operation: Operation) -> bool:
    """Return whether all ranks wait for each other, and send and receive `count` elements each, as in MPI_Allreduce."""
    if operation.sent is None or operation.received is None or operation.waits_for != "all":
        return False
    return {operation.sent.c(types_in_c), operation.received.c(types_in_c)} == {ELEMENTS}


def usual_call(call: str, other: str, region_name: str) -> list[str]:
    """Return the statements of a wrapper with a fast path for the most frequent case (`quipu_mpi_usual` in call.h).

    call: C text of the call of MPI. other: C text of the call of the general wrapper, which handles all other cases.
    This is a tail call, so both wrappers have the same stack address, which quipu_mpi_outermost compares.
    """
    return [
        f"const struct quipu_link *link = quipu_mpi_usual_link(&{region_name}, comm, datatype);",
        "if (__builtin_expect(link == NULL, 0))",
        f"    __attribute__((musttail)) return {other};",
        "const uint64_t size = quipu_mpi_thread.size;",
        "int result;",
        "{",
        "    QUIPU_MPI_USUAL_CALL(link);",
        f"    result = {call};",
        "    call.end = quipu_cycles();",
        "    if (__builtin_expect(result == MPI_SUCCESS, 1))",
        "        quipu_mpi_count_usual(call.node, count, size);",
        "}",
        "return result;",
    ]


def begin_and_end(function: str, arguments: Sequence[str]) -> Statements:
    """Return further statements for the wrapper of a function that begins or ends MPI, or describes a process grid.

    The statements `after` run when the wrapper has left its region.
    """
    if function in GRIDS:
        periods = GRIDS[function]
        last = "NULL" if periods is None else arguments[periods]
        return Statements(success=[f"quipu_mpi_process_grid({arguments[1]}, {arguments[2]}, {last});"])
    operation = operation_of(function)
    if operation is None:
        return Statements()
    return Statements(
        BEFORE_END.get(operation.ends or "", []),
        AFTER_END.get(operation.ends or "", []),
        [line.format(*arguments) for line in AFTER_BEGIN.get(operation.begins or "", [])],
    )


def handle_ends(function: str) -> list[str]:
    """Return the first statements of the wrapper of a function that frees a communicator or window.

    These statements also run if the MPI library itself calls the wrapper. For other functions there are none.
    """
    return ["quipu_mpi_handle_ends();"] if function in ENDS_OF_HANDLES else []


def replacement(function: str) -> str:
    """Return the name of the wrapper that replaces a function in the address tables (GOT) of a program."""
    return f"quipu_{function}"


def following(function: str) -> str:
    """Return the name of the variable that points to the function which a wrapper calls.

    This is the PMPI_ function, or the wrapper of another library (native/chain.c).
    """
    return f"following_{function}"


def own_name(function: str) -> str:
    """Return an alias of the wrapper of a function. No other library defines a function with this name."""
    return f"own_{function}"


def region(function: str) -> str:
    """Return the name of the variable with the region of a function. The wrappers of all languages share the region."""
    return f"quipu_mpi_region_{function[4:]}"


def argument_names(function: Function, operation: Operation | None) -> tuple[str, ...]:
    """Return the argument names of an operation in operations.toml; without an operation, unique names made from mpi.h.

    Raises MeasurementError if mpi.h and operations.toml give the function different numbers of arguments.
    """
    if operation is None:
        return tuple(f"{parameter.name}_{i}" for i, parameter in enumerate(function.parameters))
    if len(operation.arguments) != len(function.parameters):
        raise MeasurementError(
            f"mpi.h declares {function.name} with {len(function.parameters)} arguments, the table of operations has "
            f"{len(operation.arguments)}: correct its row in operations.toml"
        )
    return operation.arguments


def waits_in_call(operation: Operation) -> bool:
    """Return whether the function itself returns the status with the received bytes: not if it returns a request."""
    return operation.received_from_status and "status" in operation.arguments


def transfer(operation: Operation, types: Types, *, simulated: bool = False, result: str = "result") -> Statements:
    """Return the statements that count an operation that moves data, or that returns a request for such an operation.

    The statements use the arguments by their names in operations.toml (`request` and `status` are pointers), and
    `call.node`. types: writes datatype arguments in the language binding. result: C text of the error code.
    """
    waits_around = waiting.simulated_transfer(operation) if simulated else waiting.transfer(operation, result)
    parts = Statements(after=waits_around.after)
    arguments = operation.arguments
    to_peer, from_peer = "true", "true"
    if operation.to is not None:
        parts.before.append(f"const bool to_peer = {operation.to} != MPI_PROC_NULL;")
        to_peer = "to_peer"
        from_peer = "to_peer" if operation.kind == "one-sided" else "true"
    if operation.source is not None:
        peer, nobody = operation.source, "MPI_PROC_NULL"
        if peer == "message":
            peer, nobody = "*message", "MPI_MESSAGE_NO_PROC"
        parts.before.append(f"const bool from_peer = {peer} != {nobody};")
        from_peer = "from_peer"
    sent = _guarded(to_peer, operation.sent.c(types)) if operation.sent is not None else "0"
    received = _guarded(from_peer, operation.received.c(types)) if operation.received is not None else "0"
    waits = operation.received_from_status and "request" in arguments
    if operation.received_from_status and not waits:
        received = _guarded(from_peer, "quipu_mpi_status_bytes(status)")
    receives = operation.received is not None or operation.received_from_status
    if received == sent and sent != "0":
        received = "sent"
    parts.success += _processes(operation, needs_group="group." in sent + received)
    parts.success += [f"const uint64_t sent = {sent};", f"const uint64_t received = {received};"]
    if operation.counts_messages:
        message_sent = to_peer if operation.sent is not None else "false"
        message_received = from_peer if receives else "false"
    else:
        collective = operation.kind in ("collective", "persistent")
        message_sent = "sent > 0" if collective else "false"
        message_received = "received > 0" if collective else "false"
    if waits or operation.persistent:
        members = [f".message_received = {message_received}"]
        members += [f".message_sent = {message_sent}"] if operation.persistent else []
        parts.success += _posted(operation, members, from_peer if receives else to_peer, types)
    parts.before += waits_around.before
    parts.success += waits_around.success
    if not operation.persistent:
        later = "false" if waits else message_received
        parts.success.append(f"quipu_mpi_count(call.node, processes, sent, received, {message_sent}, {later});")
        if operation.to is not None:
            parts.success += _exchanged(operation)
    return parts


def _posted(operation: Operation, members: list[str], peer: str, types: Types) -> list[str]:
    """Return statements that store a request. Its bytes are counted when it starts or completes (native/requests.c).

    members: further initializers of `struct quipu_mpi_request`. peer: C condition, false if the peer is MPI_PROC_NULL.
    """
    if operation.received_from_status and operation.room is not None:
        members += [".from_status = !QUIPU_MPI_LACKS_STATUS || !to_peer", f".received = {operation.room.c(types)}"]
    else:
        members += [f".from_status = {str(operation.received_from_status).lower()}"]
    if operation.persistent:
        members += [".persistent = true", ".sent = sent", ".received = received"]
        if operation.to is not None:
            members += [f".has_partner = true, .partner = {_partner(operation)}"]
    return [
        f"if ({peer})",
        "    quipu_mpi_posted(*request, (struct quipu_mpi_request){.node = call.node, .processes = processes,",
        f"                     {', '.join(members)}}});",
    ]


def completion(completes: Completes, operation: Operation, *, simulated: bool = False) -> Statements:
    """Return the statements that count in a function that completes, starts or frees requests."""
    arguments = operation.arguments
    if completes == "start":
        before = waiting.simulated_start("1", "request") if simulated else []
        return Statements(before, success=["quipu_mpi_started(*request, call.node);"])
    if completes == "startall":
        before = waiting.simulated_start("count", "requests") if simulated else []
        started = ["for (int i = 0; i < count; i++)", "    quipu_mpi_started(requests[i], call.node);"]
        return Statements(before, success=started)
    declare = "struct quipu_mpi_completion completion;"
    if completes == "free":
        return Statements(
            [declare, "quipu_mpi_before_free(&completion, request);"],
            ["quipu_mpi_after_free(&completion, result);"],
        )
    count = "count" if "count" in arguments else "1"
    requests = "requests" if "requests" in arguments else "request"
    statuses = "statuses" if "statuses" in arguments else "status"
    flag = "flag" if "flag" in arguments else "NULL"
    expected = count if statuses == "statuses" else "1"
    wait = f"{statuses} = quipu_mpi_await(&completion, {count}, {requests}, {statuses}, {expected});"
    after = {
        "one": f"quipu_mpi_completed_one(&completion, result, request, NULL, {flag});",
        "any": f"quipu_mpi_completed_one(&completion, result, requests, index, {flag});",
        "some": "quipu_mpi_completed_some(&completion, result, outcount, indices);",
        "all": f"quipu_mpi_completed_all(&completion, result, {flag});",
    }[completes]
    if simulated:
        around = waiting.simulated_completion(operation, count, requests)
        return Statements([declare, wait, *around.before], [after, *around.after])
    before = [declare, wait, *waiting.before(operation)]
    return Statements(before, [*waiting.after(operation), after, *waiting.completed(operation, "completion")])


def _processes(operation: Operation, *, needs_group: bool) -> list[str]:
    """Return C declarations of `processes` and, if expressions use it, of `group`.

    processes: number of processes of the communicator, window or file; 0 if the function has none of these arguments.
    needs_group: expressions use further members of `group`.
    """
    argument = operation.group_argument
    if argument is None:
        return ["const int processes = 0;"]
    if argument == "comm" and not needs_group:
        return ["const int processes = quipu_mpi_processes_of(comm);"]
    of = f"{GROUP_OF[argument]}({argument})"
    if argument == "comm" and "root" in operation.arguments:
        of = "quipu_mpi_rooted(comm, root)"
    return [f"const struct quipu_mpi_group group = {of};", "const int processes = group.all;"]


def _partner(operation: Operation) -> str:
    """Return a C expression for the rank in MPI_COMM_WORLD of the peer in the argument `operation.to`."""
    of = WORLD_RANK_IN[operation.group_argument or ""]
    return f"{of}({operation.group_argument}, {operation.to})"


def _exchanged(operation: Operation) -> list[str]:
    """Return statements that add a message or a one-sided operation to this rank's row of the communication matrix."""
    lines = [f"    const int partner = {_partner(operation)};"]
    if operation.sent is not None:
        lines.append("    quipu_mpi_sent_to(partner, sent);")
    if operation.kind == "one-sided" and operation.received is not None:
        lines.append("    quipu_mpi_fetched_from(partner, received);")
    return ["if (to_peer && call.node != NULL) {", *lines, "}"]


def _guarded(condition: str, value: str) -> str:
    return value if condition == "true" else f"{condition} ? {value} : 0"
