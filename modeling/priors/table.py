# SPDX-License-Identifier: Apache-2.0
"""Define the expected run time of MPI operations: Table I of the noise-resilient priors paper, and further rows.

Sources
[18] E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and
     experience. Concurrency and Computation 19(13), 2007.
[19] R. W. Hockney: The communication challenge for MPP: Intel Paragon and Meiko CS-2. Parallel Computing 20(3), 1994.
[T]  R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in MPICH.
     International Journal of High Performance Computing Applications 19(1), 2005.
[H]  D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization. International Journal of
     Parallel Programming 17(1), 1988.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..mpi_operations import operation_of


class Bytes(Enum):
    """Definition of B(p, x) in a row, from the mean over ranks of the measured bytes."""

    NONE = "no data"
    SENT = "bytes sent"
    RECEIVED = "bytes received"
    ALL_SENT = "bytes sent by all processes of the communicator"
    ALL_RECEIVED = "bytes received by all processes of the communicator"
    LARGER = "the larger of bytes sent and received"
    REQUESTED = "the larger of bytes sent and received by the nonblocking operations that are completed"


class Scale(Enum):
    """A function of the number of processes p of the communicator."""

    ONE = "1"
    LOG = "log2(p)"
    OTHERS = "(p-1)"
    SHARE = "(p-1)/p"


@dataclass(frozen=True)
class Row:
    """f = latency(p)·α·visits + transfer(p)·β·B + reduction(p)·γ·B; a missing scale means a missing term.

    model: name in the column `model` of mpi_wrap/operations.toml.
    """

    model: str
    bytes: Bytes
    latency: Scale
    transfer: Scale | None
    reduction: Scale | None
    source: str

    @property
    def text(self) -> str:
        """Return the row as a formula."""
        parts = ["α·visits" if self.latency is Scale.ONE else f"{self.latency.value}·α·visits"]
        for symbol, scale in (("β", self.transfer), ("γ", self.reduction)):
            if scale is not None:
                parts.append(f"{symbol}·B" if scale is Scale.ONE else f"{scale.value}·{symbol}·B")
        return " + ".join(parts)


_VAN_DE_GEIJN, _HOCKNEY = "Chan et al. 2007", "Hockney 1994"
_THAKUR, _HENSGEN = "Thakur et al. 2005", "Hensgen et al. 1988"
_LATENCY = "one latency per call"

_ROWS = (
    # the eight rows of Table I
    Row("send", Bytes.SENT, Scale.ONE, Scale.ONE, None, _HOCKNEY),
    Row("recv", Bytes.RECEIVED, Scale.ONE, Scale.ONE, None, _HOCKNEY),
    Row("bcast", Bytes.RECEIVED, Scale.LOG, Scale.ONE, None, _VAN_DE_GEIJN),
    Row("scatter", Bytes.ALL_RECEIVED, Scale.LOG, Scale.SHARE, None, _VAN_DE_GEIJN),
    Row("gather", Bytes.ALL_SENT, Scale.LOG, Scale.SHARE, None, _VAN_DE_GEIJN),
    Row("allgather", Bytes.RECEIVED, Scale.LOG, Scale.SHARE, None, _VAN_DE_GEIJN),
    Row("reduce", Bytes.SENT, Scale.LOG, Scale.ONE, Scale.SHARE, _VAN_DE_GEIJN),
    Row("allreduce", Bytes.SENT, Scale.LOG, Scale.ONE, Scale.SHARE, _VAN_DE_GEIJN),
    # further point-to-point operations; operations on windows move their bytes like one message, and persistent
    # operations and exchanges with the neighbours of a topology send several messages per call
    Row("sendrecv", Bytes.LARGER, Scale.ONE, Scale.ONE, None, _HOCKNEY),
    # probes of messages: no bytes
    Row("probe", Bytes.NONE, Scale.ONE, None, None, _LATENCY),
    # completion of requests: one latency per call, and the time of the bytes
    Row("completion", Bytes.REQUESTED, Scale.ONE, Scale.ONE, None, _HOCKNEY),
    # further collective operations
    Row("barrier", Bytes.NONE, Scale.LOG, None, None, _HENSGEN),
    Row("alltoall", Bytes.SENT, Scale.OTHERS, Scale.ONE, None, _THAKUR),
    Row("reduce_scatter", Bytes.SENT, Scale.LOG, Scale.SHARE, Scale.SHARE, _THAKUR),
    Row("scan", Bytes.SENT, Scale.LOG, Scale.LOG, Scale.LOG, _VAN_DE_GEIJN),
)
ROWS = {row.model: row for row in _ROWS}
# Other algorithms of the same operations, which libraries choose by the size of messages: trees of messages that are
# sent whole (Chan et al., minimum spanning tree; Thakur et al., recursive doubling), and Bruck's for small exchanges.
# Bytes that a completion waits for may have moved behind computation.
_OTHERS = (
    Row("bcast", Bytes.RECEIVED, Scale.LOG, Scale.LOG, None, _VAN_DE_GEIJN),
    Row("reduce", Bytes.SENT, Scale.LOG, Scale.LOG, Scale.LOG, _VAN_DE_GEIJN),
    Row("allreduce", Bytes.SENT, Scale.LOG, Scale.LOG, Scale.LOG, _THAKUR),
    Row("alltoall", Bytes.SENT, Scale.LOG, Scale.LOG, None, _THAKUR),
    Row("completion", Bytes.NONE, Scale.ONE, None, None, _LATENCY),
)
# Operations that move data without a row (files, extensions): one message per call.
ANY_DATA = Row("any", Bytes.LARGER, Scale.ONE, Scale.ONE, None, _HOCKNEY)


def other_rows(row: Row) -> tuple[Row, ...]:
    """Return the rows of other algorithms of the operation of a row."""
    return tuple(other for other in _OTHERS if other.model == row.model)


def row_of(region: str) -> Row | None:
    """Return the row of an MPI region; None for operations without a row (MPI_Init, MPI_Comm_split …).

    Bytes that a wait receives count at the call that posted the request (`requests`). Nonblocking collectives have the
    row of the blocking operation, which is an upper bound of the work of their progress.
    """
    operation = operation_of(region)
    return None if operation is None or operation.model is None else ROWS[operation.model]
