# SPDX-License-Identifier: Apache-2.0
"""Model the time of one call path of MPI: latencies, bytes over bandwidth, and waiting.

    time = o · calls + alpha · steps · calls + beta · bytes + omega · computation        (with relative noise)

- calls: number of calls of the MPI operation.
- steps: number of consecutive messages in one call. Source: Table I (de Morais et al.; Hockney 1994 for messages).
- bytes: number of transferred bytes, also from Table I.
- computation: computation time of the program (seconds) × (1 - 1 / ranks). Ranks wait for each other because their
  computation differs, so waiting is modeled as a share of the computation.

All four coefficients are positive and have wide log-normal priors. Every prediction therefore contains all four parts,
even if a part is too small to be visible in short runs. The posterior of the logarithms of the coefficients is
approximated by a Gaussian around its maximum (Laplace's approximation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..experiment import CallTree
from ..priors.communication import bytes_of, scale_values
from ..priors.requests import requested_bytes
from ..priors.table import ANY_DATA, Scale, row_of
from .rates import NOISES, Floats, medians

_NOISES = (*NOISES[2:], 1.0)
# Prior medians of the coefficients: seconds per call, seconds per step, seconds per byte, share of the computation.
# _DEVIATION: prior standard deviation of the natural logarithm of each coefficient.
_USUAL = (2e-7, 1e-6, 2e-10, 0.004)
_DEVIATION = 2.5
_LACK_OF_FIT = 0.1  # relative error that all repetitions of a configuration share
_DRIFT = 0.5  # further standard deviation of ln time at twice the measured computation, or at twice the measured ranks
_UNITS, _SCALES = ("µs · calls", "µs · steps", "ns · bytes", "% · computation"), (1e6, 1e6, 1e9, 100.0)
_NOTICEABLE = 0.05  # `Transfer.text` omits parts below this share of the time of the call path
_ROUNDS, _LONGEST_STEP, _SETTLED = 30, 1.0, 1e-3


@dataclass(frozen=True, eq=False)
class Transfer:
    """The posterior of the coefficients of a call path, for one noise level.

    - ln_weight: natural logarithm of the evidence, without normalization.
    - logs: natural logarithms of the coefficients, shape (4,). covariance: their covariance, shape (4, 4).
    - largest: calls, steps, bytes and computation at the configuration with most computation, shape (4,).
    - ranks: largest measured number of ranks.
    """

    ln_weight: float
    logs: Floats
    covariance: Floats
    largest: Floats
    ranks: float

    def at(self, amounts: Floats, ranks: float) -> tuple[float, float]:
        """Return the mean and the standard deviation of ln time.

        amounts: calls, steps, bytes and computation, shape (4,); at least one must be above 0.
        """
        parts = np.exp(self.logs) * amounts
        shares = parts / parts.sum()
        computed = float(self.largest[3])
        drift = math.log2(max(ranks / self.ranks, 1.0))
        drift += math.log2(max(float(amounts[3]) / computed, 1.0)) if computed > 0 else 0.0
        variance = float(shares @ self.covariance @ shares) + _LACK_OF_FIT**2 + _DRIFT**2 * drift
        return math.log(float(parts.sum())), math.sqrt(variance)

    @property
    def text(self) -> str:
        """Return the coefficients that take a noticeable part of the time: "0.2 µs · calls + 1.2 % · computation"."""
        parts = np.exp(self.logs) * self.largest
        values = np.exp(self.logs) * _SCALES
        noticed = parts >= _NOTICEABLE * parts.sum()
        rows = zip(values.tolist(), _UNITS, noticed.tolist(), strict=True)
        return " + ".join(f"{value:.3g} {unit}" for value, unit, noticeable in rows if noticeable)


def transfers(times: Floats, amounts: Floats, ranks: Floats) -> list[Transfer]:
    """Return the posteriors of the coefficients of a call path, one for each noise level.

    The result is empty if no configuration has both a time and an amount above 0.

    - times: seconds, shape (configurations, repetitions); NaN where not measured.
    - amounts: calls, steps, bytes and seconds of computation, shape (configurations, 4).
    - ranks: number of ranks, shape (configurations,).
    """
    there, middle, repeated = medians(times)
    known = amounts[there].any(axis=1)
    if not known.any():
        return []
    measured, amounts, most = np.log(middle[known]), amounts[there][known], float(ranks[there][known].max())
    return [_fitted(measured, amounts, noise**2 * repeated[known], most) for noise in _NOISES]


def _fitted(measured: Floats, amounts: Floats, variance: Floats, ranks: float) -> Transfer:
    """Return the posterior around its maximum, which the Gauss-Newton method finds.

    measured: ln seconds, shape (configurations,). variance: the variance of `measured`, same shape.
    """
    usual, precision = np.log(_USUAL), np.eye(len(_USUAL)) / _DEVIATION**2
    variance = variance + _LACK_OF_FIT**2
    logs = usual
    for _ in range(_ROUNDS):
        parts = np.exp(logs) * amounts
        whole = parts.sum(axis=1)
        shares = parts / whole[:, None]
        curvature = (shares.T / variance) @ shares + precision
        slope = (shares.T / variance) @ (measured - np.log(whole)) - precision @ (logs - usual)
        step = np.clip(np.linalg.solve(curvature, slope), -_LONGEST_STEP, _LONGEST_STEP)
        logs = logs + step
        if np.abs(step).max() < _SETTLED:
            break
    missed = measured - np.log((np.exp(logs) * amounts).sum(axis=1))
    misfit = (missed**2 / variance).sum() + np.log(variance).sum() + (logs - usual) @ precision @ (logs - usual)
    weight = -0.5 * float(misfit + np.linalg.slogdet(curvature)[1])
    return Transfer(weight, logs, np.asarray(np.linalg.inv(curvature)), amounts[amounts[:, 3].argmax()], ranks)


def table_amounts(tree: CallTree, counts: Mapping[str, Floats], paths: Sequence[int]) -> dict[int, Floats]:
    """Return the calls, steps and bytes of MPI call paths at C points by Table I, shape (3, C) for each call path.

    counts: `visits`, `bytes_sent`, `bytes_received` and `comm_size` of all N call paths, each of shape (N, C). A
    message takes one step; with one process it takes none.
    """
    visits, sent, received = (counts[name] for name in ("visits", "bytes_sent", "bytes_received"))
    processes = np.maximum(counts["comm_size"], 1.0)
    requested = requested_bytes(tree, sent[:, :, None], received[:, :, None])[:, :, 0]
    result = {}
    for path in paths:
        row, size = row_of(tree.region_of(path).name) or ANY_DATA, processes[path]
        steps = size > 1.0 if row.latency is Scale.ONE else scale_values(row.latency, size)
        moved = bytes_of(row, sent[path], received[path], size, requested[path])
        scale = 0.0 if row.transfer is None else scale_values(row.transfer, size)
        result[path] = np.array([visits[path], steps * visits[path], scale * moved])
    return result
