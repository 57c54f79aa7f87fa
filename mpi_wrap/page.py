# SPDX-License-Identifier: Apache-2.0
"""Write the page docs/design/mpi-operations.md from the table of operations."""

from __future__ import annotations

from collections.abc import Iterable

from .table import Operation, Row

HEAD = """\
# What Quipu counts for each MPI operation

*For people who change Quipu.*

This page lists the bytes, messages and waiting that Quipu counts for each MPI operation. `python -m quipu.mpi_wrap
page` writes it from `mpi_wrap/operations.toml`, and a test compares the two.

Most functions of `mpi.h` are regions with visits and time. An operation also counts bytes and messages if a table below
has a formula or *status* for it. The metric `comm_size` is the number of processes of the communicator, window or file.

*Example.* 8 ranks broadcast 1 MB. The root counts 8 MB sent, including its own part, and each rank counts 1 MB
received. Over all ranks, as many bytes are sent as received. The exceptions are one-sided operations, where only the
origin counts, and MPI-IO, which has no other side.

- **Bytes** are count × size of the datatype, without gaps. A receive counts the bytes that arrived. Messages to and
  from `MPI_PROC_NULL` do not count.
- **Messages.** Point-to-point and one-sided operations count one message per direction, even of 0 bytes. A collective
  operation counts one sent message if it sends any bytes, and one received message if it receives any.
- **Own part.** The part that a process sends to itself counts, with and without `MPI_IN_PLACE`.
- **Nonblocking operations** (column *forms*: I, as `MPI_Ibcast`). Sends and collective operations count when the
  program posts them. A receive counts when a wait or test function completes it, because its size is unknown before.
  Its bytes belong to the call path that posted it. A cancelled receive counts nothing.
- **Persistent requests** (column *forms*: P, as `MPI_Bcast_init`) count at each start, at the call path of `MPI_Start`.
  A persistent receive belongs to this call path, too, but counts when it completes.
- **Large counts.** Functions such as `MPI_Bcast_c` follow the same rules.
- **MPI-IO** counts written bytes as sent and read bytes as received, and no messages.
- **Languages.** C, Fortran (`mpif.h`, `use mpi` and `use mpi_f08`) and Python (mpi4py) count in the same way.
- **Sessions.** Programs that begin with `MPI_Session_init` count in the same way. Their collective operations have no
  [probe](mpi-waiting.md#collective-operations), the small reduction that measures waiting.
- **MPICH** does not define the status of `MPI_Isendrecv`. There, this operation counts the size of the receive buffer.
- **Functions that are not regions:** functions without a PMPI form, functions with variable arguments (`MPI_Pcontrol`),
  conversions of handles (`MPI_Comm_c2f`), and functions that do not return `int` (`MPI_Wtime`).

Score-P follows the same rules with three exceptions. It omits the own part of a process with `MPI_IN_PLACE`. For an
`MPI_Allreduce` of *n* bytes, Score-P counts *size*·*n* bytes sent and *size*·*n* bytes received on each rank; Quipu
counts *n* and *n*. For scans, the count of Score-P depends on the rank.

## Columns of the tables

- **bytes sent, bytes received**: formulas. `size` is the number of processes of the communicator. For an
  inter-communicator, it is the size of the remote group. `root_here`: this process is the root. `leaf`: this process
  sends or receives the part of one process. In an intra-communicator, the root is a leaf, too. *status* means the bytes
  in the `MPI_Status`. `mpi_wrap/operations.toml` defines all names.
- **waits for**: what the blocking form may wait for. *leaves*: the root waits for all others. *buffer*: until the
  message is sent or copied. A long message is sent when the receiver is ready.
- **model**: the formula of the expected time, a row of `modeling/priors/table.py`.

"""


COLUMNS = ("operation", "forms", "bytes sent", "bytes received", "convention", "waits for", "model")
TITLES = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"


def operations_page(rows: Iterable[Row]) -> str:
    """Return the page as Markdown."""
    rows = tuple(rows)
    parts = [HEAD]
    for kind in dict.fromkeys(_section(row.operation) for row in rows):
        parts.append(f"## {kind}\n\n{TITLES}")
        parts += [_line(row) for row in rows if _section(row.operation) == kind]
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def _section(operation: Operation) -> str:
    return {
        "point-to-point": "Point-to-point",
        "persistent": "Point-to-point",
        "completion": "Completion and start of requests",
        "collective": "Collective",
        "one-sided": "One-sided",
        "io": "File I/O",
        "uncounted": "Visits and time only",
    }[operation.kind]


def _line(row: Row) -> str:
    operation = row.operation
    names = ", ".join(f"`{name}`" for name in row.names)
    forms = " ".join(form[0].upper().replace("N", "I") for form in row.forms)
    sent = f"`{operation.sent.text}`" if operation.sent else ""
    received = f"`{operation.received.text}`" if operation.received else ""
    if operation.received_from_status:
        received = "status"
    cells = (names, forms, sent, received, operation.convention, operation.waits_for or "", operation.model or "")
    return f"| {' | '.join(cells)} |\n"
