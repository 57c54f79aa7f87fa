# SPDX-License-Identifier: Apache-2.0
"""Write the page docs/design/mpi-operations.md from the table of operations."""

from __future__ import annotations

from collections.abc import Iterable

from .table import Operation, Row

HEAD = """\
# What Quipu counts for each MPI operation

*For people who change Quipu.*

This page lists the bytes, messages and waiting of each MPI operation. `python -m quipu.mpi_wrap page` writes it from
`mpi_wrap/operations.toml`, and a test compares the two.

Every function of `mpi.h` is a region with visits and time. The operations below also count bytes, messages and the
number of processes of the communicator (both groups of an inter-communicator). For each communication operation, the
sum of the sent bytes over ranks equals the sum of the received bytes. One-sided operations are the exception: only
the origin counts.

- **Bytes** are count × size of the datatype, without gaps. A receive counts the bytes in its status. `MPI_PROC_NULL`
  as a peer counts no bytes and no message.
- **Messages.** A collective operation counts one sent message if it sends more than 0 bytes, and one received message
  if it receives more than 0 bytes.
- **Own part.** The part that a process sends to itself counts, with and without `MPI_IN_PLACE`. A broadcast therefore
  sends *size*·*n* bytes.
- **Nonblocking operations.** A send or a collective operation counts where the program posts it. A completed receive
  counts on the call path that posted it. Any wait or test function completes it, and so does `MPI_Request_free` of a
  complete receive. A cancelled receive counts nothing. A cancelled send counts, because no current MPI cancels sends.
- **Persistent requests** count at each start, on the call path of the start.
- **Forms.** *I* is nonblocking (`MPI_Ibcast`), *P* is persistent (`MPI_Bcast_init`). Large-count functions
  (`MPI_Bcast_c`) follow the same rule.
- **MPICH** does not define the status of `MPI_Isendrecv` and `MPI_Isendrecv_replace`. There, these operations count
  the size of the receive buffer, which is an upper bound.
- **Languages.** Fortran programs count in the same way through `mpif.h`, `use mpi` and `use mpi_f08`, and Python
  programs through mpi4py.
- **Sessions.** A program that begins with `MPI_Session_init` instead of `MPI_Init` counts in the same way. The number
  of a process is its rank in the process set `mpi://WORLD`. Collective operations are not probed
  (`QUIPU_MPI_WAIT=sample` acts like `local`), and the ranks are merged after the run.
- **MPI-IO** counts written bytes as sent and read bytes as received, and no messages.

Score-P follows the same conventions with three exceptions. It omits the own part of a process with `MPI_IN_PLACE`.
For `MPI_Allreduce` it counts *size*·*n* bytes on each side, where Quipu counts *n*. For scans it counts by rank.

The column *waits for* names what the blocking form may wait for; nonblocking and persistent forms do not wait. The
separation of [waiting](mpi-waiting.md) and the causes of a diagnosis use this column. *model* is the communication
model of the time, a row of `modeling/priors/table.py`. The first lines of `mpi_wrap/operations.toml` explain the
terms.

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
