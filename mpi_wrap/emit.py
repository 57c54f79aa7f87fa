# SPDX-License-Identifier: Apache-2.0
"""Generate the C text of the wrapper of one C function of MPI.

The row of the operation in the table determines the accounting. The generated text calls the functions that
native/quipu_mpi.h declares.
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
# Calls at the beginning and the end of MPI, by the values of the columns `begins` and `ends`.
BEFORE_END = {
    "job": ["quipu_mpi_report_partners();", "quipu_flush();"],
    "mpi": ["quipu_mpi_report_partners();", "quipu_mpi_end_probes();", "quipu_mpi_reduce_at_end();"],
    "session": ["quipu_mpi_report_partners();"],
}
AFTER_BEGIN = {"mpi": ["quipu_mpi_initialized();"], "session": ["quipu_mpi_session_begun({2});"]}
AFTER_END = {"mpi": ["quipu_mpi_finalized();"], "session": ["quipu_mpi_session_ended();"]}
WORLD_RANK_IN = {"comm": "quipu_mpi_world_rank_in_comm", "win": "quipu_mpi_world_rank_in_win"}
# Functions after which MPI may reuse the value of a handle for another object.
ENDS_OF_HANDLES = ("MPI_Comm_free", "MPI_Comm_disconnect", "MPI_Win_free")
# Functions whose second and third argument are the process grid. The value: the number of the argument with the
# periodic dimensions, None if there is none.
GRIDS = {"MPI_Cart_create": 3, "MPI_Dims_create": None}
# The bytes of an argument `count` of elements of an argument `datatype`.
ELEMENTS = "quipu_mpi_bytes(count, datatype)"

# Functions in which SMPI simulates no time: their real time counts as computation.
_LOCAL = re.compile(
    r"MPI_(Type|Op|Info|Group|Errhandler|Error|Status|Attr|Keyval|T|Query|Is_thread|Add_error|Alloc|Free|Get)_"
    r"|_(rank|size|name|coords|shift|neighbors|neighbors_count|keyval|attr|errhandler|compare|group|inter|test|get|map)$"
    r"|MPI_(Initialized|Finalized|Address|Init|Init_thread|Dims_create)$"
)


def types_in_c(name: str) -> str:
    """Return a datatype, or an array of datatypes, as a `struct quipu_mpi_types`."""
    return f"(struct quipu_mpi_types){{.{'each' if name.endswith('types') else 'all'} = {name}}}"


def wrapper(function: Function, operation: Operation | None, *, simulated: bool = False) -> str:
    """Return the wrapper of one function; without an operation it only measures visits and time.

    simulated: the wrapper is for SMPI and uses simulated time. A library cannot replace functions of SMPI by name
    (native/tables.c), so the wrapper has another name and calls the function of SMPI.

    Raises MeasurementError if mpi.h declares another number of arguments than the table.
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
    """Return the text that separates waiting under SMPI if all processes of a window wait for each other."""
    known = operation_of(function.name)
    windows = [name for name, own in zip(names, function.parameters, strict=True) if own.type.strip() == "MPI_Win"]
    waits = known is not None and known.waits_for == "all" and len(windows) == 1
    return waiting.simulated_window(windows[0]) if waits else Statements()


def c_function(signature: str, lines: Sequence[str]) -> str:
    """Return the text of a function."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"{signature} {{\n{body}\n}}\n"


def is_exchange_of_equals(operation: Operation) -> bool:
    """Return whether all ranks wait for all, and each sends and receives the same number of elements: MPI_Allreduce."""
    if operation.sent is None or operation.received is None or operation.waits_for != "all":
        return False
    return {operation.sent.c(types_in_c), operation.received.c(types_in_c)} == {ELEMENTS}


def usual_call(call: str, other: str, region_name: str) -> list[str]:
    """Return the statements of a wrapper with a short path for the most frequent case (call.h).

    `other` is the call of the wrapper for all cases. It is a tail call: both wrappers have the same address on the
    stack (quipu_mpi_outermost).
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
    """Return the further statements of wrappers where MPI begins and ends, and where the ranks are arranged.

    `after` is outside of the region.
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
    """Return the first statements of a function that frees a communicator or window, also for calls of MPI itself."""
    return ["quipu_mpi_handle_ends();"] if function in ENDS_OF_HANDLES else []


def replacement(function: str) -> str:
    """Return the name of the wrapper that replaces a function in the tables of a program."""
    return f"quipu_{function}"


def following(function: str) -> str:
    """Return the variable with the function that a wrapper calls: of MPI or of another library (native/chain.c)."""
    return f"following_{function}"


def own_name(function: str) -> str:
    """Return a name for the wrapper of a function that no other library defines."""
    return f"own_{function}"


def region(function: str) -> str:
    """Return the static variable with the region of a function, which its language bindings share."""
    return f"quipu_mpi_region_{function[4:]}"


def argument_names(function: Function, operation: Operation | None) -> tuple[str, ...]:
    """Return the argument names of the table for an operation, else the names of mpi.h, made unique."""
    if operation is None:
        return tuple(f"{parameter.name}_{i}" for i, parameter in enumerate(function.parameters))
    if len(operation.arguments) != len(function.parameters):
        raise MeasurementError(
            f"mpi.h declares {function.name} with {len(function.parameters)} arguments, the table of operations has "
            f"{len(operation.arguments)}: correct its row in operations.toml"
        )
    return operation.arguments


def waits_in_call(operation: Operation) -> bool:
    """Return whether the function itself returns the status with the received bytes."""
    return operation.received_from_status and "status" in operation.arguments


def transfer(operation: Operation, types: Types, *, simulated: bool = False, result: str = "result") -> Statements:
    """Return the accounting of an operation that moves data, or starts or creates a request that moves data.

    The text uses the operation's arguments with their names in the table, `request` and `status` as pointers, and
    `call.node`; `types` writes datatypes in the language binding.
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
    """Return statements that store a request, which is counted at its completion.

    members: further initializers of `struct quipu_mpi_request`.
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
    """Return the accounting of a function that completes, starts or frees requests."""
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
    """Return declarations of `processes`, the size of the group, and of `group` if expressions need more of it."""
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
    """Return an expression for the rank in MPI_COMM_WORLD of the peer that the operation sends to."""
    of = WORLD_RANK_IN[operation.group_argument or ""]
    return f"{of}({operation.group_argument}, {operation.to})"


def _exchanged(operation: Operation) -> list[str]:
    """Return statements that add a message or one-sided operation to the communication matrix of the sender."""
    lines = [f"    const int partner = {_partner(operation)};"]
    if operation.sent is not None:
        lines.append("    quipu_mpi_sent_to(partner, sent);")
    if operation.kind == "one-sided" and operation.received is not None:
        lines.append("    quipu_mpi_fetched_from(partner, received);")
    return ["if (to_peer && call.node != NULL) {", *lines, "}"]


def _guarded(condition: str, value: str) -> str:
    return value if condition == "true" else f"{condition} ? {value} : 0"
