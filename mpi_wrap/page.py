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

Every function of `mpi.h` is a region with visits and time. The operations below also count bytes, messages and the
number of processes of the communicator.

*Example.* 8 ranks broadcast 1 MB. The root counts 8 MB sent, including its own part, and each rank counts 1 MB
received. Over all ranks, as many bytes are sent as received. This holds for all operations except one-sided
operations, where only the origin counts.

- **Bytes** are count × size of the datatype, without gaps. A receive counts the bytes that arrived. Messages to and
  from `MPI_PROC_NULL` do not count.
- **Messages.** A collective operation counts one sent message if it sends any bytes, and one received message if it
  receives any.
- **Own part.** The part that a process sends to itself counts, with and without `MPI_IN_PLACE`.
- **Nonblocking operations** (column *forms*: I, as `MPI_Ibcast`). Sends and collective operations count where the
  program posts them. A receive also counts at the call path that posted it, when any wait or test function completes
  it. A cancelled receive counts nothing.
- **Persistent requests** (column *forms*: P, as `MPI_Bcast_init`) count at each start.
- **Large counts.** Functions such as `MPI_Bcast_c` follow the same rules.
- **MPI-IO** counts written bytes as sent and read bytes as received, and no messages.
- **Languages.** C, Fortran (`mpif.h`, `use mpi` and `use mpi_f08`) and Python (mpi4py) count in the same way.
- **Sessions.** Programs that begin with `MPI_Session_init` count in the same way. Their collective operations are not
  [probed](mpi-waiting.md#collective-operations).
- **MPICH** does not define the status of `MPI_Isendrecv`. There, this operation counts the size of the receive buffer.

Score-P follows the same rules with three exceptions. It omits the own part of a process with `MPI_IN_PLACE`. For an
`MPI_Allreduce` of *n* bytes it counts *size*·*n* bytes on each side, where Quipu counts *n*. For scans its count
depends on the rank.

The column *waits for* names the object for which the blocking form may wait. *model* is the formula of the time, a row
of `modeling/priors/table.py`. The first lines of `mpi_wrap/operations.toml` explain all terms of the tables.

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
