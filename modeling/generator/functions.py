# SPDX-License-Identifier: Apache-2.0
"""Generated functions: their computation and communication, and the resulting complexity."""

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
        """Return the called MPI functions."""
        if self is Operation.SEND_RECV:
            return "MPI_Send", "MPI_Recv"
        return () if self is Operation.NONE else (f"MPI_{self.value.capitalize()}",)

    @property
    def to_all(self) -> bool:
        """Return whether every rank sends a separate message to each rank."""
        return self in (Operation.ALLGATHER, Operation.ALLTOALL)

    @property
    def moves_data(self) -> bool:
        """Return whether the operation transfers bytes."""
        return self not in (Operation.NONE, Operation.BARRIER)


@dataclass(frozen=True)
class Computation:
    """Loops with the sizes `loops`, outermost first.

    Each loop does one step per iteration before its inner loops, so that nested loops r0, r1 do r0 + r0·r1 steps. Sizes
    are generally not whole numbers. An inner loop sometimes does one iteration more, so that the total over all its
    executions is the product of the sizes, rounded once.
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
        """Return the steps of one rank, without the rounding of the sizes."""
        return add([Model(PARAMETERS, *_split(total)) for total in self.totals]) if self.loops else Model(PARAMETERS)


@dataclass(frozen=True)
class Communication:
    """`calls` calls of an operation; each rank sends `elements` elements per call (for `to_all`: to each rank)."""

    operation: Operation
    elements: Term = ONCE
    calls: Term = ONCE

    @property
    def volume(self) -> Model:
        """Return the bytes that one rank sends, without the rounding of the sizes (mean over ranks)."""
        if not self.operation.moves_data:
            return Model(PARAMETERS)
        one = Model(PARAMETERS, *_split(self.elements.times(self.calls).scaled(BYTES_PER_ELEMENT)))
        return one.times(RANKS) if self.operation.to_all else one

    def time(self, name: str) -> Model:
        """Return the run time of an MPI function if all coefficients are 1: its row of Table I (de Morais et al.)."""
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
    """One generated function: a name that C++ accepts, its loops and its messages."""

    name: str
    computation: Computation
    communication: Communication


def _split(term: Term) -> tuple[float, tuple[Term, ...]]:
    return (0.0, (term,)) if term.factors else (term.coefficient, ())
