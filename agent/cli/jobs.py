"""`--jobs`: modeling by several processes of this machine, or by those of an MPI job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from quipu.modeling.errors import ModelingError


@contextmanager
def modeling_by(jobs: str) -> Iterator[None]:
    """Model in `jobs` processes within the block; "mpi" takes the workers of `mpiexec … python -m mpi4py.futures`.

    Raises ModelingError if `jobs` is neither, or without mpi4py.
    """
    from quipu.modeling.pmnf.parallel import distributed

    if jobs == "1":
        yield
    elif jobs == "mpi":
        try:
            from mpi4py.futures import MPIPoolExecutor
        except ImportError as error:
            raise ModelingError("--jobs mpi needs mpi4py: pip install mpi4py") from error
        with MPIPoolExecutor() as workers, distributed(workers.map, max(workers.num_workers, 1)):
            yield
    elif jobs.isascii() and jobs.isdigit() and int(jobs) > 0:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        # not forked: threads of the linear algebra library would be missing in the children
        with ProcessPoolExecutor(int(jobs), get_context("spawn")) as pool, distributed(pool.map, int(jobs)):
            yield
    else:
        raise ModelingError(f"--jobs must be a number of processes above 0, or mpi, not {jobs!r}")
