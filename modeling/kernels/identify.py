# SPDX-License-Identifier: Apache-2.0
"""Kernels of a program: which functions are worth a model of their own (section 3.2 of the APMT paper, Fig. 2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelingError
from ..experiment import Experiment, FloatArray, RegionKind
from ..rate_fit import typical
from .growth import Method
from .variables import Variables, timed

SHARE = 0.05
"""Share of the time from which on a function is a kernel: the default of the paper."""
LEAST_PROFILES = 3
"""Profiles that kernels are identified from: "at least three" (section 3.2)."""
# _DECREASE: a run time that falls by less than this part from the smallest to the largest number of processes does not
# decrease. _NOTICEABLE: call paths with a smaller part of the program are too short to tell.
_DECREASE, _NOTICEABLE = 0.05, 1e-4


class KernelKind(Enum):
    """Why functions are a kernel."""

    KEY = "large share"
    NON_SCALABLE = "does not decrease"
    REST = "rest"


@dataclass(frozen=True)
class Kernel:
    """A function, or all that are in no other kernel; paths: its call paths, in the order of the tree.

    share: the largest part of the program's time that it has in a profile.
    """

    name: str
    kind: KernelKind
    paths: tuple[int, ...]
    share: float


def computing(experiment: Experiment) -> NDArray[np.bool_]:
    """Return which call paths compute: no MPI, and no part of its start and end. Shape (call paths,)."""
    tree = experiment.tree
    is_mpi = np.array([region.kind is RegionKind.MPI for region in tree.regions], dtype=bool)
    return np.asarray(~is_mpi[tree.region] & ~tree.start_and_end, dtype=bool)


def times_of(experiment: Experiment, method: Method = "quipu") -> FloatArray:
    """Return the typical seconds per rank of every call path, shape (call paths, C).

    0 where nothing was measured, and where times do not count (`timed`) unless the method is that of the paper.
    """
    if "time" not in experiment.values or not np.nansum(experiment.values["time"]) > 0:
        raise ModelingError(f"{experiment.name}: has no time, so it has no kernels: was it measured with --counts?")
    return np.where(timed(experiment) | (method == "paper"), typical(experiment.values["time"]), 0.0)


def identify(
    experiment: Experiment, variables: Variables, share: float = SHARE, method: Method = "quipu"
) -> tuple[Kernel, ...]:
    """Return the kernels, those with the largest share first, the rest last.

    Functions with at least `share` of the time of a profile; those whose time does not decrease with the number of
    processes (or, at one number of processes, decreases with no problem size: every problem of one size); and the sum
    of all others. Raises ModelingError if there are fewer than three profiles.
    """
    if experiment.configurations < LEAST_PROFILES:
        raise ModelingError(
            f"{experiment.name}: has {experiment.configurations} configurations; kernels are identified from at least "
            f"{LEAST_PROFILES}: measure other numbers of processes or problem sizes"
        )
    times = times_of(experiment, method)
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
    """Whether run time decreases with P wherever all else is the same; True where only one P was measured.

    use: the configurations whose times count, (C,).
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
