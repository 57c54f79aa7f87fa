# SPDX-License-Identifier: Apache-2.0
"""Run independent tasks in this process, in several processes of this machine, or in an MPI job (option --jobs).

The results have the order of the tasks. They do not depend on the number of workers, except for rounding errors of
sums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import EnvironmentProblem, UsageError
from .limits import whole_number

# With fewer call paths per batch, sending the batch to a worker takes longer than fitting the models.
LEAST_BATCH = 250
# Batches with more call paths, or more values, need more memory without saving time.
MOST_BATCH = 2000
MOST_VALUES = 1 << 20
# Environment variables in which MPI launchers store the number of processes.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Workers:
    """The processes that execute tasks. map_tasks: function that distributes tasks, such as map or Executor.map."""

    count: int
    map_tasks: Callable[..., Iterable[Any]]

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield function(task) for every task, in the order of the tasks."""
        return iter(self.map_tasks(function, tasks))


ALONE = Workers(1, map)
_workers: ContextVar[Workers] = ContextVar("workers", default=ALONE)


@contextmanager
def jobs(number: str) -> Iterator[Workers | None]:
    """Yield the workers of the option `--jobs`. They also fit all models inside of the block (`workers_for`).

    number: a number of processes on this machine, or "mpi" for an MPI job. Such a job has one of two forms:
    `mpiexec -n 4 quipu …` or `mpiexec -n 4 python -m mpi4py.futures …`. In the first form, rank 0 gets the workers, and
    the other ranks execute tasks for rank 0. When rank 0 has left its block, the blocks of the other ranks begin with
    None.

    Raises UsageError for another text, and EnvironmentProblem without mpi4py or with an mpi4py of another MPI library.
    """
    if number == "mpi":
        with _mpi_executor() as executor:
            if executor is None:
                yield None
                return
            with modeling_by(Workers(max(executor.num_workers, 1), executor.map)) as workers:
                yield workers
    elif (count := whole_number(number) or 0) > 1:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # "spawn", because forked processes would lack the threads of the linear algebra library.
        with ProcessPoolExecutor(count, get_context("spawn")) as pool, modeling_by(Workers(count, pool.map)) as workers:
            yield workers
    elif number == "1":
        yield ALONE
    else:
        raise UsageError(f"--jobs must be a number of processes above 0, or mpi, not {number[:40]!r}")


@contextmanager
def modeling_by(workers: Workers) -> Iterator[Workers]:
    """Fit models with these workers inside of the block."""
    token = _workers.set(workers)
    try:
        yield workers
    finally:
        _workers.reset(token)


def started_by_mpi() -> bool:
    """Return whether an MPI launcher started this process as one of several."""
    sizes = (os.environ.get(name, "") for name in _SIZES)
    return any((whole_number(size) or 0) > 1 for size in sizes)


def _mpi_executor() -> AbstractContextManager[Any]:
    """Return a context manager: an executor over the processes of this MPI job, or over processes that MPI spawns."""
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor, MPIPoolExecutor
    except (ImportError, RuntimeError) as error:
        raise EnvironmentProblem(f"working in an MPI job needs mpi4py: pip install mpi4py ({error})") from error
    if MPI.COMM_WORLD.Get_size() > 1:
        return MPICommExecutor(MPI.COMM_WORLD)
    if started_by_mpi():
        raise EnvironmentProblem(
            "the launcher started several processes, but mpi4py sees only one: it belongs to "
            f"{MPI.Get_library_version().split(',')[0].strip()}; use the mpirun of that MPI"
        )
    return MPIPoolExecutor()


def workers_for(paths: int) -> Workers:
    """Return the workers of the current block for fits of this number of call paths; this process if they are few."""
    return _workers.get() if paths >= 2 * LEAST_BATCH else ALONE


def batches(paths: int, workers: int, values: int = 1) -> list[slice]:
    """Divide `paths` call paths with `values` values each into slices, several per worker; at least one slice."""
    return [own[0] for own in batches_of([paths], workers, values)]


def batches_of(sizes: Sequence[int], workers: int, values: int = 1) -> list[list[slice]]:
    """Divide consecutive groups of call paths of these sizes into batches, as `batches` does.

    A batch is a list of slices. A batch contains several small groups, or a part of a group that is larger than a
    batch.
    """
    paths = sum(sizes)
    most = min(MOST_BATCH, max(1, MOST_VALUES // max(values, 1)))
    if workers > 1:
        most = min(most, max(LEAST_BATCH, -(-paths // (4 * workers))))
    result: list[list[slice]] = []
    room = start = 0
    for size in sizes:
        end = start + size
        for first in range(start, max(end, start + 1), most):
            part = slice(first, min(first + most, end))
            if not result or part.stop - part.start > room:
                result.append([])
                room = most
            result[-1].append(part)
            room -= part.stop - part.start
        start = end
    return result
