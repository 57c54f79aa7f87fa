# SPDX-License-Identifier: Apache-2.0
"""Select the functions of a program that are kernels (section 3.2 of the APMT paper, Fig. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelingError
from ..experiment import Experiment, FloatArray, RegionKind
from ..rate_fit import typical
from .variables import Variables, timed

SHARE = 0.05
"""A function with at least this share of the time is a kernel (default of the paper)."""
LEAST_PROFILES = 3
"""The number of profiles that is necessary: "at least three" (section 3.2)."""
# _DECREASE: a run time decreases if it falls by at least this part from the smallest to the largest number of
# processes. _NOTICEABLE: the growth of call paths with a smaller part of the program is not determined.
_DECREASE, _NOTICEABLE = 0.05, 1e-4


class KernelKind(Enum):
    """Why functions are a kernel."""

    KEY = "large share"
    NON_SCALABLE = "does not decrease"
    REST = "rest"


@dataclass(frozen=True)
class Kernel:
    """A function, or the sum of all functions that are not a separate kernel.

    paths: its call paths, in the order of the tree. share: the largest part of the program's time over the profiles.
    """

    name: str
    kind: KernelKind
    paths: tuple[int, ...]
    share: float


def computing(experiment: Experiment) -> NDArray[np.bool_]:
    """Return which call paths compute, (call paths,): all except MPI operations and the start and end of MPI."""
    tree = experiment.tree
    is_mpi = np.array([region.kind is RegionKind.MPI for region in tree.regions], dtype=bool)
    return np.asarray(~is_mpi[tree.region] & ~tree.start_and_end, dtype=bool)


def times_of(experiment: Experiment) -> FloatArray:
    """Return the typical seconds per rank of every call path, shape (call paths, C).

    The value is 0 without a measurement, and at configurations whose times are not used (`timed`).
    """
    if "time" not in experiment.values or not np.nansum(experiment.values["time"]) > 0:
        raise ModelingError(f"{experiment.name}: contains no times, so it has no kernels; measure without --counts")
    return np.where(timed(experiment), typical(experiment.values["time"]), 0.0)


def identify(experiment: Experiment, variables: Variables, share: float = SHARE) -> tuple[Kernel, ...]:
    """Return the kernels, largest share first, and the sum of the other functions last.

    A function is a kernel if it has at least `share` of the time of a profile, or if its time does not decrease with
    the number of processes. With one number of processes, its time must decrease with the problem size for no other
    parameter. Raises ModelingError if there are fewer than three profiles.
    """
    if experiment.configurations < LEAST_PROFILES:
        raise ModelingError(
            f"{experiment.name}: has too few configurations for kernels ({experiment.configurations}, at least "
            f"{LEAST_PROFILES} are needed): measure other numbers of processes or problem sizes"
        )
    times = times_of(experiment)
    tree, computes = experiment.tree, computing(experiment)
    total = times[~tree.start_and_end].sum(axis=0)
    groups: dict[int, list[int]] = {}
    for path in np.flatnonzero(computes).tolist():
        groups.setdefault(int(tree.region[path]), []).append(path)
    kernels, rest = [], list[int]()
    for region, paths in groups.items():
        own = times[paths].sum(axis=0)
        largest = float(np.max(own / np.where(total > 0, total, 1.0)))
        if largest >= share:
            kind = KernelKind.KEY
        elif largest >= _NOTICEABLE and not _decreases(experiment, variables, own, total > 0):
            kind = KernelKind.NON_SCALABLE
        else:
            rest += paths
            continue
        kernels.append(Kernel(tree.regions[region].display, kind, tuple(paths), largest))
    kernels.sort(key=lambda kernel: -kernel.share)
    if rest:
        own = times[rest].sum(axis=0)
        largest = float(np.max(own / np.where(total > 0, total, 1.0)))
        kernels.append(Kernel("all other functions", KernelKind.REST, tuple(sorted(rest)), largest))
    return tuple(kernels)


def _decreases(experiment: Experiment, variables: Variables, times: FloatArray, use: NDArray[np.bool_]) -> bool:
    """Return whether the run time decreases with P if all else is equal; True if only one P was measured.

    use: the configurations whose times are used, (C,).
    """
    if variables.processes is None:
        return True
    at = experiment.parameters.index(variables.processes)
    others = np.delete(experiment.points, at, axis=1)
    for other in np.unique(others, axis=0):
        same = np.flatnonzero((others == other).all(axis=1) & use)
        order = same[np.argsort(experiment.points[same, at])]
        if order.size > 1 and times[order[-1]] > (1 - _DECREASE) * times[order[0]] > 0:
            return False
    return True
