# SPDX-License-Identifier: Apache-2.0
"""The page docs/design/mpi-operations.md, written from the table of operations."""

from __future__ import annotations

from collections.abc import Iterable

from .table import Operation, Row

HEAD = """\
# What Quipu counts for each MPI operation

*For people who change Quipu.*

Written from `mpi_wrap/operations.toml` by `python -m quipu.mpi_wrap page`; a test compares the two.

Every function of `mpi.h` is a region with visits and time. The operations below also count bytes, messages and the
number of processes of the communicator (both groups of an inter-communicator). The sums over ranks of bytes sent and
bytes received are equal for each communication operation, except for one-sided ones, where only the origin counts.

- Bytes are count × size of the datatype (gaps do not count). A receive counts what its status says.
- `MPI_IN_PLACE` saves a copy and changes no rule. What a process has for itself counts, as in the model of a
  broadcast that sends *size*·*n* bytes. Score-P's conventions are the same but for three things: it leaves out a
  process's own part with `MPI_IN_PLACE`; for `MPI_Allreduce` it counts *size*·*n* on each side where we count *n*;
  and for scans it counts by rank.
- `MPI_PROC_NULL` as a peer: no bytes, no message.
- A nonblocking send or collective counts where it is posted; a receive is credited to the call path that posted it
  when it completes (any wait or test function, or `MPI_Request_free` of a complete one). A persistent request counts
  at each start, on the call path of the start. A cancelled receive counts nothing; a send counts when it is posted,
  for no MPI of today takes it back.
- A collective counts one message sent where it sends more than 0 bytes, one received where it receives more than 0.
- Forms: *I* nonblocking (`MPI_Ibcast`), *P* persistent (`MPI_Bcast_init`); where `mpi.h` has them, large-count twins
  (`MPI_Bcast_c`) follow the same rule.
- MPICH leaves the status of `MPI_Isendrecv` and `MPI_Isendrecv_replace` undefined: there they count the size of the
  receive buffer, which is at least what they received.
- Programs in Fortran count alike, through `mpif.h`, `use mpi` and `use mpi_f08`; Python programs through mpi4py.
- A program that begins with `MPI_Session_init` instead of `MPI_Init` counts alike. Its place is that in the process
  set `mpi://WORLD`; there are no probes of collectives (`QUIPU_MPI_WAIT=sample` is then `local`), and its ranks are
  merged after the run.
- MPI-IO counts bytes written as sent and bytes read as received, and no messages.

The last columns are what the operation itself may wait for (its nonblocking and persistent forms wait for nothing), on
which [waiting](mpi-waiting.md) and the causes of a diagnosis rest, and the communication model of its time, a row of
`modeling/priors/table.py`. The head of `mpi_wrap/operations.toml` explains the words.

"""


COLUMNS = ("operation", "forms", "bytes sent", "bytes received", "convention", "waits for", "model")
TITLES = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n"


def operations_page(rows: Iterable[Row]) -> str:
    """The page as Markdown."""
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
