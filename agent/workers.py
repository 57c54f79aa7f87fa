"""Who does the parts of a merge: this process, several processes of this machine, or those of an MPI job."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from quipu.modeling.errors import EnvironmentProblem

Task = TypeVar("Task")
Result = TypeVar("Result")

_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")


class Workers(Protocol):
    """Does tasks, and yields their results in the order of the tasks."""

    def __call__(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield function(task) for every task."""


def alone(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """Do all tasks in this process."""
    return map(function, tasks)


@contextmanager
def processes(jobs: int) -> Iterator[Workers]:
    """Do tasks in so many processes of this machine within the block."""
    if jobs <= 1:
        yield alone
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # not forked: threads of libraries would be missing in the children
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:

        def by_pool(function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
            return pool.map(function, tasks)

        yield by_pool


def started_by_mpi() -> bool:
    """Whether a launcher of MPI started this process as one of several."""
    sizes = (os.environ.get(name, "") for name in _SIZES)
    return any(size.isdigit() and int(size) > 1 for size in sizes)


@contextmanager
def mpi_job() -> Iterator[Workers | None]:
    """Do tasks in all processes of the MPI job that this one belongs to.

    Rank 0 gets the workers, which it takes part in. The other ranks get None, after they have done their tasks.
    Raises EnvironmentProblem without mpi4py.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise EnvironmentProblem("merging in an MPI job needs mpi4py: pip install mpi4py") from error
    job = _Job(MPI.COMM_WORLD)
    if job.rank > 0:
        job.serve()
        yield None
        return
    try:
        yield job
    finally:
        job.dismiss()


class _Job:
    """Task i is done by rank i modulo the number of ranks."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self.rank: int = comm.Get_rank()
        self._size: int = comm.Get_size()
        self._awaited: list[int] = []

    def __call__(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        listed = list(tasks)
        self._comm.bcast((function, listed))
        owners = [index % self._size for index in range(len(listed))]
        self._awaited = [owner for owner in reversed(owners) if owner]
        for owner, task in zip(owners, listed, strict=True):
            if owner == 0:
                yield function(task)
                continue
            self._awaited.pop()
            result, error = self._comm.recv(source=owner)
            if error is not None:
                raise error
            yield result

    def serve(self) -> None:
        """Do the tasks of this rank until rank 0 has no more."""
        while (work := self._comm.bcast(None)) is not None:
            function, tasks = work
            self._do(function, tasks[self.rank :: self._size])

    def _do(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> None:
        for task in tasks:
            answer: tuple[Any, Exception | None]
            try:
                answer = (function(task), None)
            except Exception as error:  # goes to rank 0, which raises it
                answer = (None, error)
            self._comm.send(answer, dest=0)

    def dismiss(self) -> None:
        """Let the other ranks go, also if rank 0 gave up before it had all results."""
        while self._awaited:
            self._comm.recv(source=self._awaited.pop())
        self._comm.bcast(None)
