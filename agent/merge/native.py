# SPDX-License-Identifier: Apache-2.0
"""Call libquipu_merge.so: the C functions that the merge shares with the reduction over MPI.

Their sources are in mpi_wrap/native/reduction. The library checks all indices, so that a damaged profile never causes
an access outside of an array. All functions here raise EnvironmentProblem if the library cannot be loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numpy.ctypeslib import ndpointer
from numpy.typing import NDArray
from quipu.modeling.errors import EnvironmentProblem
from quipu.modeling.experiment import FloatArray, IntArray

from ..archive.sketch import MOST_BUCKETS
from ..installation import REINSTALL, native_file

LIBRARY = "libquipu_merge.so"
CELL = np.dtype(
    [
        *((name, "f8") for name in ("sum", "m2", "min", "max")),
        *((name, "u4") for name in ("min_rank", "max_rank", "present", "known")),
        *((name, "u1") for name in ("level", "used")),
        ("bucket", "u2", MOST_BUCKETS),
        ("count", "u4", MOST_BUCKETS),
    ],
    align=True,
)
"""struct quipu_cell of cells.h: statistics of one metric of one call path over some ranks. All fields are 0 without
ranks.

- m2: sum of squared deviations from the mean.
- min_rank, max_rank: the ranks with the minimum and the maximum; the lowest rank if several have the same value.
- present: number of ranks with the call path.
- known: number of ranks with a known value; a rank without the call path has the known value 0.
- level, used, bucket, count: the quantile sketch (archive/sketch.py).
"""
Cells = NDArray[np.void]
SMALLEST_CELL = 29
"""Smallest size of a cell in a message of the reduction over MPI (bytes)."""


class _ThreadRows(ctypes.Structure):
    """struct quipu_thread_rows of wall.h."""

    _fields_ = (
        ("count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("path", "thread", "visits", "time", "wait", "threads")),
    )


_ROOT = (1 << 32) - 1
_NO_MEMORY = -1
_COUNT, _FLAG = ctypes.c_uint64, ctypes.c_bool
_NUMBERS, _INTEGERS, _FLOATS, _CELLS = (
    ndpointer(kind, flags="C_CONTIGUOUS") for kind in (np.uint32, np.int64, np.float64, CELL)
)
_FUNCTIONS = {
    "quipu_unify": (ctypes.c_int64, (ctypes.c_uint32, *[_NUMBERS] * 5)),
    "quipu_cells_merge": (None, (_CELLS, _CELLS, _COUNT)),
    "quipu_cells_merge_packed": (_FLAG, (_CELLS, _COUNT, ctypes.c_char_p, _COUNT)),
    "quipu_cells_add_rows": (
        _FLAG,
        (ctypes.c_void_p, _COUNT, _COUNT, _INTEGERS, _COUNT, _COUNT, _INTEGERS, _INTEGERS, _FLOATS, _FLAG),
    ),
    "quipu_wall_times": (_FLAG, (_ThreadRows, ctypes.c_int64, ctypes.c_int64, _INTEGERS)),
}


def _path() -> Path:
    """Return the path of the library: below QUIPU_HOME, or the installed library if QUIPU_HOME does not contain it."""
    try:
        return native_file(LIBRARY)
    except EnvironmentProblem:
        return native_file(LIBRARY, {})


@cache
def _functions() -> dict[str, Callable[..., int]]:
    path = _path()
    found = {}
    try:
        library = ctypes.CDLL(str(path))
        if ctypes.c_uint32.in_dll(library, "quipu_cell_size").value != CELL.itemsize:
            raise ValueError("it belongs to another version of Quipu")
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            found[name] = function
    except (OSError, ValueError, AttributeError) as error:
        raise EnvironmentProblem(f"{path} cannot be used: {error}; {REINSTALL}") from error
    return found


def unify_nodes(parent: IntArray, region: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the call path of each node (nodes,), and the parent and the region of each call path (call paths,).

    parent: index of the parent of each node, -1 for a root; parents come before their children. Two nodes have the same
    call path if the regions from their roots are equal. The call paths are ordered level by level, and siblings in the
    order of their first node. Raises ValueError if a parent does not come before its child, MemoryError if there is not
    enough memory or there are 2^32 - 1 nodes or more.
    """
    nodes = parent.size
    if nodes >= _ROOT:
        raise MemoryError(f"{nodes} nodes of call trees exceed the limit")
    path, tree_parent, tree_region = (np.empty(nodes, dtype=np.uint32) for _ in range(3))
    arguments = (np.where(parent < 0, _ROOT, parent).astype(np.uint32), region.astype(np.uint32))
    count = _functions()["quipu_unify"](nodes, *arguments, path, tree_parent, tree_region)
    if count == _NO_MEMORY:
        raise MemoryError("no memory for the call paths")
    if count < 0:
        raise ValueError("a call path comes before its parent")
    above = tree_parent[:count].astype(np.int64)
    above[above == _ROOT] = -1
    return path.astype(np.int64), above, tree_region[:count].astype(np.int64)


def merge_cells(into: Cells, other: Cells) -> None:
    """Add the statistics of other ranks to the cells `into`, in place. The two sets of ranks must be disjoint.

    Raises ValueError if the shapes differ.
    """
    if into.shape != other.shape:
        raise ValueError(f"cells of shape {into.shape} and {other.shape} cannot be added")
    _functions()["quipu_cells_merge"](into, other, into.size)


def unpacked_cells(message: bytes, count: int) -> Cells:
    """Return the cells in a message of the reduction over MPI, shape (count,).

    Raises ValueError if the message contains another number of cells or inconsistent cells.
    """
    cells = np.zeros(count, dtype=CELL)
    if not _functions()["quipu_cells_merge_packed"](cells, count, message, len(message)):
        raise ValueError("statistics are inconsistent")
    return cells


def add_rows(
    cells: Cells, metric: int, ranks: IntArray, path: IntArray, rank: IntArray, values: FloatArray, largest: bool
) -> None:
    """Add the values of one metric to cells of shape (call paths, metrics), in place.

    - metric: index of the metric. ranks: all ranks of the rows, ascending.
    - path, rank, values: shape (rows,), sorted by path, then rank. Rows with the same path and rank are threads.
    - largest: whether to use the maximum over the threads of a rank; otherwise their sum is used.

    A value of NaN is unknown. Raises ValueError if rows are not sorted, or have an invalid call path or rank.
    """
    paths, metrics = cells.shape
    rows = values.size
    ranks, path, rank = (np.ascontiguousarray(array, dtype=np.int64) for array in (ranks, path, rank))
    if not cells.flags.c_contiguous or cells.dtype != CELL or path.size != rows or rank.size != rows:
        raise ValueError("cells and rows have different sizes")
    if not 0 <= metric < metrics:
        raise ValueError(f"there is no metric {metric}")
    first = cells.ctypes.data + metric * CELL.itemsize
    known = _functions()["quipu_cells_add_rows"](
        first, metrics, paths, ranks, ranks.size, rows, path, rank, values, largest
    )
    if not known:
        raise ValueError("rows are not sorted by call path and rank")


def wall_times(
    path: IntArray, thread: IntArray, parent: IntArray, visits: FloatArray, time: FloatArray, wait: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, for each row, the wall time, the waiting in it, and the number of threads that executed its call path.

    Each row belongs to one call path and thread of the same process. All arrays except `parent` have shape (rows,).

    - path, thread: of each row. The main thread has the smallest number.
    - parent: parent of each call path, -1 for a root.
    - visits, time, wait: values of the thread (time and wait in seconds).

    The sum of the wall times of all rows equals the time of the main thread (algorithm: wall.c). Raises ValueError for
    a row with an invalid call path.
    """
    path, thread, parent = (np.ascontiguousarray(array, dtype=np.int64) for array in (path, thread, parent))
    entered = np.ascontiguousarray(visits, dtype=np.float64)
    wall, waiting = np.array(time, dtype=np.float64), np.array(wait, dtype=np.float64)
    number = np.zeros(path.size)
    arrays = (path, thread, entered, wall, waiting, number)
    if any(array.shape != path.shape for array in arrays):
        raise ValueError("rows have different sizes")
    rows = _ThreadRows(path.size, *(array.ctypes.data for array in arrays))
    most = int(thread.max(initial=-1)) + 1
    if not _functions()["quipu_wall_times"](rows, most, parent.size, parent):
        raise ValueError("rows name call paths that do not exist")
    return wall, waiting, number
