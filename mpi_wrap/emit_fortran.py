# SPDX-License-Identifier: Apache-2.0
"""Generate the C text of the wrapper of one Fortran procedure of MPI.

The Fortran procedures of Open MPI call the PMPI_ functions of C, which bypasses the C wrappers. These procedures
therefore need separate wrappers (for MPICH see native/chain.c). A wrapper passes the Fortran arguments unchanged to the
PMPI procedure of the same Fortran binding. To count, it converts copies of the arguments to C.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quipu.modeling.mpi_operations import Completes

from . import waiting
from .emit import GRIDS, begin_and_end, handle_ends, region, transfer, types_in_c, waits_in_call
from .installation import OPEN_MPI
from .prototypes import Function
from .table import Operation
from .waiting import Statements

# Types of handles, and their names in the conversion functions PMPI_…_f2c.
HANDLES = {
    "MPI_Comm": "Comm",
    "MPI_Datatype": "Type",
    "MPI_Op": "Op",
    "MPI_Win": "Win",
    "MPI_File": "File",
}
NUMBERS = ("int", "MPI_Count", "MPI_Aint", "MPI_Offset")
# Number of leading C arguments (argc, argv) that the Fortran procedure does not have.
NOT_IN_FORTRAN = {"MPI_Init": 2, "MPI_Init_thread": 2}


def types_in_fortran(name: str) -> str:
    """Return C text of type `struct quipu_mpi_types` for the argument `name`.

    The argument is a datatype that has been converted to C, or an array of Fortran datatypes.
    """
    return f"(struct quipu_mpi_types){{.fortran = f_{name}}}" if name.endswith("types") else types_in_c(name)


@dataclass(frozen=True)
class FortranBinding:
    """A Fortran binding and the suffix of its procedures: mpi_send_ (mpif.h, `use mpi`), mpi_send_f08_ (`mpi_f08`)."""

    name: str
    suffix: str


def bindings_of(family: str) -> tuple[FortranBinding, ...]:
    """Return the Fortran bindings of an MPI family that need separate wrappers."""
    return (FortranBinding("mpif", "_"), FortranBinding("f08", "_f08_")) if family == OPEN_MPI else ()


def fortran_wrapper(function: Function, operation: Operation | None, binding: FortranBinding) -> str:
    """Return the C text of the wrapper of one procedure. Without an operation, the wrapper counts only visits and time.

    The pointer to the error code is NULL if the program omits this argument (mpi_f08). Compilers pass the lengths of
    character arguments after all other arguments.
    """
    parameters = function.parameters[NOT_IN_FORTRAN.get(function.name, 0) :]
    names = operation.arguments if operation is not None else tuple(f"{i}" for i in range(len(parameters)))
    strings = sum("char" in parameter.type for parameter in parameters)
    declared = [f"void *f_{name}" for name in names] + ["MPI_Fint *ierror"]
    declared += [f"size_t length_{i}" for i in range(strings)]
    types = ", ".join(["void *"] * len(names) + ["MPI_Fint *"] + ["size_t"] * strings)
    passed = ", ".join([f"f_{name}" for name in names] + ["ierror"] + [f"length_{i}" for i in range(strings)])
    procedure = f"{function.name.lower()}{binding.suffix}"
    parts = _accounting(function, operation)
    if function.name in GRIDS:
        arguments = [names[0], f"*(const int *)f_{names[1]}", *(f"(const int *)f_{name}" for name in names[2:])]
    else:  # begin_and_end uses only the session of these procedures
        arguments = [f"&(MPI_Session){{PMPI_Session_f2c(*(const MPI_Fint *)f_{name})}}" for name in names]
    around = begin_and_end(function.name, arguments)
    success = [*around.success, *parts.success]
    inner = [*around.before, *parts.before]
    inner += [f"pmpi({passed});", *parts.after]
    if success:
        inner += ["if (*ierror == MPI_SUCCESS) {", *(f"    {line}" for line in success), "}"]
    lines = [
        f"static void (*pmpi)({types}) = NULL;",
        "if (pmpi == NULL)",
        f'    *(void **)&pmpi = quipu_mpi_fortran_symbol("p{procedure}");',
        "MPI_Fint own_error = MPI_SUCCESS;",
        "if (ierror == NULL)",
        "    ierror = &own_error;",
        *handle_ends(function.name),
        "if (!quipu_mpi_outermost()) {",
        f"    pmpi({passed});",
        "    return;",
        "}",
        "{",
        f"    QUIPU_MPI_RARE_CALL(&{region(function.name)});",
        *(f"    {line}" for line in inner),
        "}",
        *around.after,
    ]
    body = "\n".join(f"    {line}" for line in lines)
    signature = f"void {procedure}({', '.join(declared)})"
    return f"QUIPU_EXPORT {signature};\n{signature} {{\n{body}\n}}\n"


def _accounting(function: Function, operation: Operation | None) -> Statements:
    if operation is None:
        return Statements()
    if operation.completes is not None:
        return _completion(operation, operation.completes)
    parts = transfer(operation, types_in_fortran, result="*ierror")
    text = "\n".join(parts.before + parts.success)
    before = []
    for parameter, name in zip(function.parameters, operation.arguments, strict=True):
        if re.search(rf"(?<!f_)\b{name}\b", text) and (line := _conversion(parameter.type, name)):
            before.append(line)
    after = []
    if waits_in_call(operation):
        before += ["MPI_Fint own_status[QUIPU_MPI_F_STATUS_SIZE];", "if (f_status == MPI_F_STATUS_IGNORE)"]
        before += ["    f_status = own_status;"]
        after += ["MPI_Status c_status, *status = &c_status;", "PMPI_Status_f2c(f_status, status);"]
    if "*request" in text:
        after += ["MPI_Request c_request = PMPI_Request_f2c(*(MPI_Fint *)f_request), *request = &c_request;"]
    return Statements(before + parts.before, parts.after + after, parts.success)


def _conversion(type_: str, name: str) -> str | None:
    """Return the C declaration of a converted copy of a Fortran argument; None if it is not converted here."""
    if type_ in NUMBERS:
        return f"const {type_} {name} = *(const {type_} *)f_{name};"
    if type_ in HANDLES:
        return f"const {type_} {name} = PMPI_{HANDLES[type_]}_f2c(*(const MPI_Fint *)f_{name});"
    if type_ == "MPI_Message *":
        return f"MPI_Message c_{name} = PMPI_Message_f2c(*(const MPI_Fint *)f_{name}), *{name} = &c_{name};"
    if type_ in ("const void *", "void *"):
        return f"const void *const {name} = quipu_mpi_fortran_buffer(f_{name});"
    if type_.removeprefix("const ").removesuffix(" *") in NUMBERS:
        return f"const {type_.removeprefix('const ')}const {name} = f_{name};"
    return None


def _completion(operation: Operation, completes: Completes) -> Statements:
    """Return the statements that count in a procedure that completes, starts or frees requests."""
    arguments = operation.arguments
    if completes == "start":
        return Statements(success=["quipu_mpi_started(PMPI_Request_f2c(*(const MPI_Fint *)f_request), call.node);"])
    if completes == "startall":
        started = "quipu_mpi_started(PMPI_Request_f2c(((const MPI_Fint *)f_requests)[i]), call.node);"
        return Statements(success=["for (int i = 0; i < *(const MPI_Fint *)f_count; i++)", f"    {started}"])
    if completes == "free":
        before = ["struct quipu_mpi_completion completion;"]
        before += ["const MPI_Request request = PMPI_Request_f2c(*(const MPI_Fint *)f_request);"]
        before += ["quipu_mpi_before_free(&completion, &request);"]
        return Statements(before, ["quipu_mpi_after_free(&completion, *ierror);"])
    count = "*(const MPI_Fint *)f_count" if "count" in arguments else "1"
    requests = "f_requests" if "requests" in arguments else "f_request"
    statuses = "f_statuses" if "statuses" in arguments else "f_status"
    expected = count if statuses == "f_statuses" else "1"
    flag = "f_flag" if "flag" in arguments else "NULL"
    before = ["struct quipu_mpi_fortran_completion completion;"]
    before += [f"{statuses} = quipu_mpi_fortran_await(&completion, {count}, {requests}, {statuses}, {expected});"]
    after = {
        "one": f"quipu_mpi_completed_one(&completion.c, *ierror, NULL, NULL, {flag});",
        "any": f"quipu_mpi_completed_one(&completion.c, *ierror, NULL, f_index, {flag});",
        "some": "quipu_mpi_completed_some(&completion.c, *ierror, f_outcount, f_indices);",
        "all": f"quipu_mpi_completed_all(&completion.c, *ierror, {flag});",
    }[completes]
    before += waiting.before(operation)
    behind = [*waiting.after(operation), f"quipu_mpi_fortran_statuses(&completion, {statuses});", after]
    behind += [*waiting.completed(operation, "completion.c"), "free(completion.memory);"]
    return Statements(before, behind)
