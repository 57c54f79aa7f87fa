# SPDX-License-Identifier: Apache-2.0
"""A program that computes and receives: 3·n² blocks and messages of 8·n bytes, with times that a test plants."""

from __future__ import annotations

import numpy as np
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind

GRID = np.array([(p, n) for p in (8.0, 27, 64, 125, 216) for n in (100.0, 200, 300, 400, 500)])
P, N = GRID.T
WORK, RECEIVE = 3e-9 * N**2, 1e-5 + 8e-9 * N
TREE = CallTree(
    (Region("main", "main"), Region("work", "work"), Region("MPI_Recv", "MPI_Recv", RegionKind.MPI)),
    np.array([0, 1, 2]),
    np.array([-1, 0, 1]),
)


def calling(operation: str) -> CallTree:
    """Return the call tree of a program whose `main` calls nothing but an operation of MPI."""
    regions = (Region("main", "main"), Region(operation, operation, RegionKind.MPI))
    return CallTree(regions, np.array([0, 1]), np.array([-1, 0]))


def experiment(
    work: FloatArray,
    receive: FloatArray,
    wait: FloatArray | None = None,
    noise: FloatArray | float = 1.0,
    setup: float = 1e-6,
) -> Experiment:
    """Return the program with these times (C,) of work, of receiving, and of waiting in it, multiplied by noise.

    setup: seconds that `main` takes, whatever p and n are.
    """
    ones, nothing = np.ones_like(P), np.zeros_like(P)
    values = {
        "visits": np.stack([ones, ones, 10 * ones]),
        "blocks": np.stack([ones, 3 * N**2, nothing]),
        "bytes_received": np.stack([nothing, nothing, 80 * N]),
        "comm_size": np.stack([nothing, nothing, P]),
        "time": np.stack([setup * ones, work, receive]) * noise,
    }
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    if wait is not None:
        values["wait_time"] = np.stack([nothing, nothing, wait]) * noise
        metrics["wait_time"] = Metric("wait_time", "s", "cost")
    return Experiment("planted", ("p", "n"), GRID, TREE, metrics, {m: v[:, :, None] for m, v in values.items()})


def normal_noise(seed: int, size: float = 0.02) -> FloatArray:
    """Return factors of all call paths and configurations."""
    factors: FloatArray = 1 + size * np.random.default_rng(seed).normal(size=(3, len(P)))
    return factors
