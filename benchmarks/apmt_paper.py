# SPDX-License-Identifier: Apache-2.0
"""Predict the run time of a program as the APMT paper does, for comparison with `quipu kernels`.

Source: N. Ding, V. W. Lee, W. Xue, W. Zheng: APMT: an automatic hardware counter-based performance modeling tool for
HPC applications. CCF Transactions on High Performance Computing 2, 2020. Section 3.3: each counter of a kernel is
a·g(x) + b. x = D / P is the amount of work of a process. g is the function with the highest R² of "a set of linear
fitting functions including polynomial, exponential and logarithm".

The latencies of the memory are not known here, so all time of computation belongs to the instructions: T_comp =
instructions · CPI / f (Table 2), with the mean of CPI / f.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from quipu.modeling.experiment import Experiment, FloatArray
from quipu.modeling.kernels.communication import Group, Kind, groups_of, volume_of
from quipu.modeling.kernels.identify import identify
from quipu.modeling.kernels.variables import Variables, variables_of
from quipu.modeling.rate_fit import typical
from scipy.optimize import nnls

FORMS: tuple[Callable[[FloatArray], FloatArray], ...] = (
    lambda x: x,
    lambda x: np.asarray(x**2),
    lambda x: np.asarray(x**3),
    lambda x: np.asarray(np.log2(x)),
    lambda x: np.asarray(x * np.log2(x)),
)
"""The predefined functions, simplest first. The exponential of x relative to the largest measured x follows."""
_ALIKE = 1e-12  # differences of R² up to this number are rounding errors


@dataclass(frozen=True)
class Growth:
    """The function seconds · (a·g(x) + b), not below 0."""

    function: Callable[[FloatArray], FloatArray]
    a: float
    b: float
    seconds: float

    def at(self, x: float) -> float:
        """Return the value at x."""
        return self.seconds * max(self.a * float(self.function(np.array([x]))[0]) + self.b, 0.0)


@dataclass(frozen=True)
class Paper:
    """The sum of the functions of all counters."""

    variables: Variables
    growths: tuple[Growth, ...]

    def at(self, point: Mapping[str, float]) -> float:
        """Return the time of a rank in seconds, without the start and the end of MPI."""
        return sum(growth.at(self.variables.amount(point)) for growth in self.growths)


def fit_paper(experiment: Experiment) -> Paper:
    """Return the model of an experiment with no other parameters than the number of processes and the problem size."""
    variables = variables_of(experiment)
    x = variables.amounts(experiment.parameters, experiment.points)
    times = typical(experiment.values["time"])
    found = []
    for kernel in identify(experiment, variables):
        time = times[list(kernel.paths)].sum(axis=0)
        counts = np.nan_to_num(experiment.values["instructions"][list(kernel.paths)]).max(axis=2).sum(axis=0)
        use = (counts > 0) & (time > 0)
        if use.any():
            found.append(best_fit(x, counts, float(np.mean(time[use] / counts[use]))))
        elif time.any():
            found.append(best_fit(x, time))
    for group in groups_of(experiment):
        found += _of_group(experiment, group, x, times)
    return Paper(variables, tuple(found))


def _of_group(experiment: Experiment, group: Group, x: FloatArray, times: FloatArray) -> list[Growth]:
    """Return T_p2p = a·s_tot + b, or T_collective = a·log(P) + b·s_tot + c (Table 2), with functions of the factors."""
    volume = volume_of(experiment, group, times)
    use = volume.time > 0
    if not use.any():
        return []
    if group.kind is Kind.OTHER:
        return [best_fit(x, volume.time)]
    factors = [np.log2(volume.sizes)] if group.kind is Kind.COLLECTIVE else []
    factors = [own for own in (*factors, volume.bytes, np.ones_like(x)) if own.any()]
    relative = np.stack(factors, axis=1)[use] / volume.time[use][:, None]
    scale = np.abs(relative).max(axis=0)
    seconds = nnls(relative / scale, np.ones(len(relative)))[0] / scale
    return [best_fit(x, own, each) for own, each in zip(factors, seconds.tolist(), strict=True) if each > 0]


def best_fit(x: FloatArray, y: FloatArray, seconds: float = 1.0) -> Growth:
    """Return the function with the highest R² at points x (N,) with values y (N,); a constant if y does not change."""
    largest, total = float(x.max()), float(np.sum((y - y.mean()) ** 2))
    constant = Growth(FORMS[0], 0.0, float(y.mean()), seconds)
    if np.unique(x).size < 2 or total <= _ALIKE * float(np.sum(y**2)):
        return constant
    best, highest = constant, -np.inf
    for form in (*FORMS, lambda x: np.asarray(np.exp(x / largest))):
        g = form(x)
        spread = float(np.sum((g - g.mean()) ** 2))
        if not np.isfinite(spread) or spread <= _ALIKE * float(np.sum(g**2)):
            continue
        a = float(np.sum((g - g.mean()) * (y - y.mean())) / spread)
        b = float(y.mean() - a * g.mean())
        r2 = 1.0 - float(np.sum((y - a * g - b) ** 2)) / total
        if r2 > highest + _ALIKE:
            best, highest = Growth(form, a, b, seconds), r2
    return best
