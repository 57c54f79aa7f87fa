"""The expected run time of MPI operations: Table I of the noise-resilient priors paper and what it leaves out.

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


class Bytes(Enum):
    """What B(p, x) of a row is, from the mean over ranks of what was measured."""

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
    """f = latency(p)·α·visits + transfer(p)·β·B + reduction(p)·γ·B; a missing scale is a missing term."""

    operation: str
    bytes: Bytes
    latency: Scale
    transfer: Scale | None
    reduction: Scale | None
    source: str

    @property
    def text(self) -> str:
        """The row as a formula."""
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
    # further point-to-point operations
    Row("sendrecv", Bytes.LARGER, Scale.ONE, Scale.ONE, None, _HOCKNEY),
    # further collective operations
    Row("barrier", Bytes.NONE, Scale.LOG, None, None, _HENSGEN),
    Row("alltoall", Bytes.SENT, Scale.OTHERS, Scale.ONE, None, _THAKUR),
    Row("reduce_scatter", Bytes.SENT, Scale.LOG, Scale.SHARE, Scale.SHARE, _THAKUR),
    Row("scan", Bytes.SENT, Scale.LOG, Scale.LOG, Scale.LOG, _VAN_DE_GEIJN),
)
_BY_OPERATION = {row.operation: row for row in _ROWS}
# Other algorithms of the same operations, which libraries choose by the size of messages: trees of messages that are
# sent whole (Chan et al., minimum spanning tree; Thakur et al., recursive doubling), and Bruck's for small exchanges.
_OTHERS = (
    Row("bcast", Bytes.RECEIVED, Scale.LOG, Scale.LOG, None, _VAN_DE_GEIJN),
    Row("reduce", Bytes.SENT, Scale.LOG, Scale.LOG, Scale.LOG, _VAN_DE_GEIJN),
    Row("allreduce", Bytes.SENT, Scale.LOG, Scale.LOG, Scale.LOG, _THAKUR),
    Row("alltoall", Bytes.SENT, Scale.LOG, Scale.LOG, None, _THAKUR),
)
_ALIASES = {
    "ssend": "send",
    "bsend": "send",
    "rsend": "send",
    "isend": "send",
    "issend": "send",
    "ibsend": "send",
    "irsend": "send",
    "irecv": "recv",
    "mrecv": "recv",
    "imrecv": "recv",
    "sendrecv_replace": "sendrecv",
    "scatterv": "scatter",
    "gatherv": "gather",
    "allgatherv": "allgather",
    "alltoallv": "alltoall",
    "alltoallw": "alltoall",
    "reduce_scatter_block": "reduce_scatter",
    "exscan": "scan",
    # operations on windows move their bytes like one message
    **dict.fromkeys(("put", "get", "accumulate", "get_accumulate", "rput", "rget", "raccumulate"), "sendrecv"),
    **dict.fromkeys(("rget_accumulate", "fetch_and_op", "compare_and_swap"), "sendrecv"),
    # persistent operations and exchanges with the neighbours of a topology send several messages per call
    **dict.fromkeys(("start", "startall"), "sendrecv"),
    **dict.fromkeys([f"neighbor_{kind}" for kind in ("allgather", "allgatherv")], "sendrecv"),
    **dict.fromkeys([f"neighbor_{kind}" for kind in ("alltoall", "alltoallv", "alltoallw")], "sendrecv"),
}
# Completing requests: a latency per call, and the time that their bytes need unless it was hidden behind computation.
_COMPLETION = frozenset([*(verb + end for verb in ("wait", "test") for end in ("", "all", "any", "some")), "parrived"])
# Looking for messages, and what has nothing to wait for: a latency per call.
_PROBES = frozenset(["probe", "iprobe", "mprobe", "improbe"])
# Data moved by an operation that no row names (files, extensions): a message per call.
ANY_DATA = Row("any", Bytes.LARGER, Scale.ONE, Scale.ONE, None, _HOCKNEY)
# Endings of names: large counts, and the Fortran 2008 module.
_ENDINGS = ("_c", "_f08", "_f08ts")


def operation_of(region: str) -> str:
    """Return the operation of an MPI region name: "bcast" for MPI_Bcast, PMPI_Bcast, mpi_bcast__, MPI_Bcast_c."""
    name = region.lower().strip("_").removeprefix("p").removeprefix("mpi_")
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name


def other_rows(row: Row) -> tuple[Row, ...]:
    """Return what other algorithms of the operation of a row take."""
    if row.operation in _COMPLETION:
        return (Row(row.operation, Bytes.NONE, Scale.ONE, None, None, _LATENCY),)
    return tuple(other for other in _OTHERS if other.operation == row.operation)


def row_of(region: str) -> Row | None:
    """Return the row of an MPI region; None for operations that have none (MPI_Init, MPI_Comm_split …).

    What a wait receives is counted at the call that posted the request (`requests`). Non-blocking collectives have
    the row of the blocking ones, which bounds the work that their progress takes.
    """
    operation = operation_of(region)
    name = _ALIASES.get(operation, operation)
    if name not in _BY_OPERATION and name.startswith("i"):
        name = _ALIASES.get(name[1:], name[1:])
    if operation in _COMPLETION:
        return Row(operation, Bytes.REQUESTED, Scale.ONE, Scale.ONE, None, _HOCKNEY)
    if operation in _PROBES:
        return Row(operation, Bytes.NONE, Scale.ONE, None, None, _LATENCY)
    return _BY_OPERATION.get(name)


def completes(region: str) -> bool:
    """Return whether an MPI region completes requests."""
    return operation_of(region) in _COMPLETION


def posts(region: str) -> bool:
    """Return whether an MPI region begins a nonblocking or persistent operation that moves data."""
    operation = operation_of(region)
    if operation.startswith("start"):
        return True
    return operation.startswith("i") and operation not in _PROBES and row_of(region) is not None
