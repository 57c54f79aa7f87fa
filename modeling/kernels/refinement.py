# SPDX-License-Identifier: Apache-2.0
"""CPI and BF_mem: as measured (Eq. 3, 4 and Table 2 of the APMT paper), and refined (Eq. 5, 6).

Eq. 5, CPI = CPI_core + BF_mem · T_mem, holds at every measured configuration. The paper solves it at two clock
frequencies (Eq. 6). Here all configurations are used (problem sizes and, if the clock is a parameter, frequencies), by
least squares with nonnegative CPI_core and BF_mem. Both sides are multiplied by instructions / f: time = instructions ·
CPI_core / f + BF_mem · T_mem. Eq. 6 calls the slope CPI_core; by Eq. 5 and Fig. 10, the slope over T_mem is BF_mem, and
CPI_core the intercept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from ..experiment import FloatArray
from .counts import Counts

_NORMAL_90 = 1.645  # half of a 90 % interval, in standard deviations
# Weight of the value of the whole kernel or program, relative to the configurations of a part. It matters only if these
# do not determine the value.
_PULL = 1e-2
# Times by reuse distance were measured with independent loads and no computation. The prior of BF_mem is therefore 1,
# with this standard deviation; times of repetitions on shared machines differ by the second number (docs/kernels.md).
UNHIDDEN, _SCATTER = 1.0, 0.03
DOUBT = _NORMAL_90 * 1.0  # half of the 90 % interval, relative to the value
# A kind of effort besides instructions must reduce the residual by this factor, from at least the second number.
_BETTER, _NOTICEABLE = 0.5, 0.01
# Configurations that are necessary to separate two kinds of effort.
_LEAST = 3


@dataclass(frozen=True)
class CpiAndBlocking:
    """cpi: cycles per instruction, in computation only. blocking: BF_mem (Eq. 3).

    per_unit: seconds per unit of further effort, unit: its name; 0 and "" if there is none. residual: root mean square
    of the relative residuals; uncertainty: half of the 90 % interval of times, relative to them. doubt: the relative
    uncertainty of BF_mem, if reuse distances at the point exceed the measured ones.
    """

    cpi: float
    blocking: float
    per_unit: float
    unit: str
    residual: float
    uncertainty: float
    doubt: float = 0.0


UNKNOWN = CpiAndBlocking(0.0, 0.0, 0.0, "", 0.0, 0.0)
"""Return the result for call paths without instructions."""


def from_stalls(counts: Counts, latencies: Mapping[str, float], clocks: FloatArray) -> CpiAndBlocking:
    """Return CPI without stalls, and BF_mem = T_stall / T_mem (Eq. 3), as means over the configurations.

    The counts contain instructions, levels and stalls. latencies: seconds. clocks: Hz, (C,).
    """
    memory = counts.memory_time(latencies)
    assert counts.instructions is not None and counts.stalls is not None
    use = (counts.instructions > 0) & (memory > 0) & (counts.time > 0)
    if not use.any():
        return refined([replace(counts, further={})], latencies, clocks, None)
    computing = np.maximum(counts.time[use] - counts.stalls[use], 0.0)
    cpi = float(np.mean(computing * clocks[use] / counts.instructions[use]))
    blocking = float(np.mean(counts.stalls[use] / memory[use]))
    found = counts.instructions[use] * cpi / clocks[use] + blocking * memory[use]
    return _with_errors(cpi, blocking, 0.0, "", found, counts.time[use], 2)


def refined(
    counts: Sequence[Counts],
    latencies: Mapping[str, float],
    clocks: FloatArray,
    drawn_to: CpiAndBlocking | None,
) -> CpiAndBlocking:
    """Return CPI_core and BF_mem (Eq. 5) by least squares over configurations, of one part or of several together.

    latencies: seconds of each level. clocks: Hz, (C,). drawn_to: the prior, which decides if configurations differ too
    little. Without known memory times, CPI is the median over the configurations (section 3.3: the mean), unless
    further effort explains the time much better (calls, or bytes that few instructions move).
    """
    rows = [one for one in counts if one.instructions is not None and one.time.any()]
    if not rows:
        return UNKNOWN
    instructions = np.concatenate([one.instructions for one in rows if one.instructions is not None])
    memory = np.concatenate([one.memory_time(latencies) for one in rows])
    time = np.concatenate([one.time for one in rows])
    use = (instructions > 0) & (time > 0)
    if not use.any():
        return UNKNOWN
    clock = np.tile(clocks, len(rows))[use]
    instructions, memory, time = instructions[use], memory[use], time[use]
    by_distance = all(one.waits is not None for one in rows)
    if not memory.any() and not by_distance:
        # The median, so that one disturbed configuration does not change the others.
        mean = float(np.median(time * clock / instructions))
        plain = _with_errors(mean, 0.0, 0.0, "", instructions * mean / clock, time, 1)
        return plain if len(rows) > 1 else _with_further(rows[0], use, plain, clocks)
    columns = np.stack([instructions / clock, memory], axis=1) / time[:, None]
    wanted = np.ones(time.size)
    if by_distance:
        scatter = _scatter_of(columns)
        columns = np.concatenate([columns, [[0.0, scatter]]])
        wanted = np.append(wanted, scatter * UNHIDDEN)
    elif drawn_to is not None:
        pull = _PULL * np.sqrt(np.mean(columns**2, axis=0))
        columns = np.concatenate([columns, np.diag(pull)])
        wanted = np.concatenate([wanted, pull * [drawn_to.cpi, drawn_to.blocking]])
    core, blocking = _least_squares(columns, wanted).tolist()
    fitted = _with_errors(core, blocking, 0.0, "", instructions * core / clock + blocking * memory, time, 2)
    if not by_distance:
        return fitted
    if len(rows) == 1:
        # The time of computation that instructions and further effort have to explain.
        rest = replace(rows[0], time=np.maximum(rows[0].time - UNHIDDEN * rows[0].memory_time(latencies), 0.0))
        other = _with_further(rest, use & (rest.time > 0), fitted, clocks)
        if other is not fitted:
            return replace(other, blocking=UNHIDDEN, doubt=_NORMAL_90)
    if blocking <= 0:
        return fitted
    known = float(np.sum((columns[: time.size, 1] / scatter) ** 2))
    return replace(fitted, doubt=_NORMAL_90 / (1 + known) ** 0.5 / blocking)


def _least_squares(columns: FloatArray, wanted: FloatArray) -> FloatArray:
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    return np.asarray(nnls(columns / scale, wanted)[0] / scale)


def _scatter_of(columns: FloatArray) -> float:
    """Return the relative deviation of times that no coefficient explains: the usual one, or more.

    If the residual of the best fit is larger, it is the error of each time (Birge 1932, "The calculation of errors by
    the method of least squares"). columns: instructions and memory, per time, (C, 2).
    """
    freedom = len(columns) - columns.shape[1]
    if freedom < 1:
        return _SCATTER
    errors = columns @ _least_squares(columns, np.ones(len(columns))) - 1
    return max(_SCATTER, float(np.sqrt(np.sum(errors**2) / freedom)))


def _with_further(counts: Counts, use: NDArray[np.bool_], plain: CpiAndBlocking, clocks: FloatArray) -> CpiAndBlocking:
    """Return the fit to instructions and one further effort, if it is much better than `plain`. clocks: Hz, (C,)."""
    if plain.residual < _NOTICEABLE or int(use.sum()) < _LEAST:
        return plain
    assert counts.instructions is not None
    cycles, time, best = counts.instructions[use] / clocks[use], counts.time[use], plain
    for unit, values in counts.further.items():
        columns = np.stack([cycles, values[use]], axis=1) / time[:, None]
        scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
        cpi, per_unit = (nnls(columns / scale, np.ones(time.size))[0] / scale).tolist()
        found = cycles * cpi + values[use] * per_unit
        other = _with_errors(cpi, 0.0, per_unit, unit if per_unit else "", found, time, 2)
        if other.residual < _BETTER * best.residual:
            best = other
    return best


def _with_errors(
    cpi: float, blocking: float, per_unit: float, unit: str, found: FloatArray, time: FloatArray, coefficients: int
) -> CpiAndBlocking:
    errors = found / time - 1
    residual = float(np.sqrt(np.mean(errors**2)))
    freedom = max(time.size - coefficients, 1)
    uncertainty = _NORMAL_90 * float(np.sqrt(np.sum(errors**2) / freedom))
    return CpiAndBlocking(cpi, blocking, per_unit, unit, residual, uncertainty)
