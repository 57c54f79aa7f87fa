# SPDX-License-Identifier: Apache-2.0
"""Generated functions: their computation, their communication, and the complexity of both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from ..pmnf.model import Factor, Model, Term, add
from ..priors.communication import scale_model
from ..priors.table import Bytes, row_of
from .growth import PARAMETERS

BYTES_PER_ELEMENT = 4
RANKS = Model(PARAMETERS, 0.0, (Term(1.0, (Factor("p", Fraction(1)),)),))
ONCE = Term(1.0, ())


class Arrangement(Enum):
    """The arrangement of the loops of a function: nested or sequential."""

    NESTED = "nested"
    SEQUENTIAL = "sequential"


class Step(Enum):
    """The computation of one iteration; each step depends on the result of the previous one."""

    ADDITION = "Addition"
    MULTIPLICATION = "Multiplication"
    MULTIPLY_ADD = "MultiplyAdd"
    RELAXATION = "Relaxation"


class Operation(Enum):
    """The communication of a function; the value is its name in specifications and in the generated code."""

    NONE = "none"
    BARRIER = "barrier"
    BCAST = "bcast"
    REDUCE = "reduce"
    ALLREDUCE = "allreduce"
    GATHER = "gather"
    SCATTER = "scatter"
    ALLGATHER = "allgather"
    ALLTOALL = "alltoall"
    SEND_RECV = "send_recv"

    @property
    def mpi_names(self) -> tuple[str, ...]:
        """Return the names of the MPI functions that the operation calls."""
        if self is Operation.SEND_RECV:
            return "MPI_Send", "MPI_Recv"
        return () if self is Operation.NONE else (f"MPI_{self.value.capitalize()}",)

    @property
    def to_all(self) -> bool:
        """Return whether each rank sends data to all ranks, so that its volume grows with p."""
        return self in (Operation.ALLGATHER, Operation.ALLTOALL)

    @property
    def moves_data(self) -> bool:
        """Return whether the operation transfers bytes."""
        return self not in (Operation.NONE, Operation.BARRIER)


@dataclass(frozen=True)
class Computation:
    """Loops with the sizes `loops` (numbers of iterations), outermost first.

    Each loop does one step per iteration before its inner loops. Nested loops of sizes r0 and r1 do r0 + r0·r1 steps.
    Sizes are generally not whole numbers. Some executions of an inner loop therefore have one iteration more than
    others, so that their total is the product of the sizes, rounded only once.
    """

    loops: tuple[Term, ...]
    arrangement: Arrangement = Arrangement.NESTED
    step: Step = Step.MULTIPLY_ADD

    @property
    def totals(self) -> tuple[Term, ...]:
        """Return the total number of steps of each loop: its size times the sizes of the enclosing loops."""
        if self.arrangement is Arrangement.SEQUENTIAL:
            return self.loops
        found: list[Term] = []
        for loop in self.loops:
            whole = found[-1].times(loop) if found else loop
            found.append(Term(whole.coefficient, whole.shape))
        return tuple(found)

    @property
    def model(self) -> Model:
        """Return the number of steps of one rank as a function of p and n, without the rounding of sizes."""
        return add([Model(PARAMETERS, *_split(total)) for total in self.totals]) if self.loops else Model(PARAMETERS)


@dataclass(frozen=True)
class Communication:
    """Calls of one operation by each rank.

    calls: number of calls. elements: number of elements (4 bytes each) that a rank sends per call; for `to_all`
    operations, to each rank.
    """

    operation: Operation
    elements: Term = ONCE
    calls: Term = ONCE

    @property
    def volume(self) -> Model:
        """Return the bytes that one rank sends in all calls (mean over ranks), without the rounding of sizes."""
        if not self.operation.moves_data:
            return Model(PARAMETERS)
        one = Model(PARAMETERS, *_split(self.elements.times(self.calls).scaled(BYTES_PER_ELEMENT)))
        return one.times(RANKS) if self.operation.to_all else one

    def time(self, name: str) -> Model:
        """Return the expected run time of the calls of an MPI function, with all coefficients 1 (no unit).

        The growth is the row of the function in Table I of de Morais et al. (priors/table.py).
        """
        row = row_of(name)
        assert row is not None
        volume = self.volume.times(RANKS) if row.bytes in (Bytes.ALL_SENT, Bytes.ALL_RECEIVED) else self.volume
        parts = []
        calls = Model(PARAMETERS, *_split(self.calls))
        for scale, factor in ((row.latency, calls), (row.transfer, volume), (row.reduction, volume)):
            scaled = None if scale is None else scale_model(scale, RANKS)
            if scaled is not None:
                parts.append(factor.times(scaled))
        return add(parts)


@dataclass(frozen=True)
class Function:
    """One generated function. name: an identifier of C++."""

    name: str
    computation: Computation
    communication: Communication


def _split(term: Term) -> tuple[float, tuple[Term, ...]]:
    return (0.0, (term,)) if term.factors else (term.coefficient, ())
