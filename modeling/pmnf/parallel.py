"""Where models are fitted: here, or by the workers of a process pool or of an MPI pool.

The caller owns the pool (concurrent.futures or mpi4py.futures); inside of `distributed`, fit_models hands batches of
call paths to its `map`. Batches are independent, so that models depend on the number of workers in the last digits of
sums only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ..errors import ModelingError

# Fewer call paths per batch are not worth the way to a worker.
LEAST_BATCH = 250
# More call paths, or more values, per batch take memory and no less time.
MOST_BATCH = 2000
MOST_VALUES = 1 << 20


@dataclass(frozen=True)
class Workers:
    """The `map` of an executor, and how many workers there are behind it."""

    map: Callable[..., Iterable[Any]]
    count: int


_workers: ContextVar[Workers | None] = ContextVar("workers", default=None)


@contextmanager
def distributed(executor_map: Callable[..., Iterable[Any]], count: int) -> Iterator[None]:
    """Fit models by `executor_map` within the block; it must keep the order, as Executor.map does."""
    if count < 1:
        raise ModelingError(f"the number of workers must be 1 or more, not {count}")
    token = _workers.set(Workers(executor_map, count))
    try:
        yield
    finally:
        _workers.reset(token)


def workers_for(paths: int) -> Workers | None:
    """Return the workers to model so many call paths, None to do it here."""
    current = _workers.get()
    return current if current is not None and current.count > 1 and paths >= 2 * LEAST_BATCH else None


def batches(paths: int, workers: int, values: int = 1) -> list[slice]:
    """Return slices of `paths` call paths of so many `values` each, a few per worker, at least one."""
    size = min(MOST_BATCH, max(1, MOST_VALUES // max(values, 1)))
    if workers > 1:
        size = min(size, max(LEAST_BATCH, -(-paths // (4 * workers))))
    return [slice(start, min(start + size, paths)) for start in range(0, max(paths, 1), size)]
