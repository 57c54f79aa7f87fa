# SPDX-License-Identifier: Apache-2.0
"""Counts of one call path with equal steps: counts that show the steps determine them for the others."""

from __future__ import annotations

import numpy as np
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model

N = np.array([300.0, 500, 900, 1500, 2600, 4500])
STEPS = np.ceil(np.log2(N / 48) / 2)


def _models(**counts: FloatArray) -> dict[str, Model]:
    """Return the models of the counts (C,) or (C, R) of a call path, by metric."""
    tree = CallTree((Region("grow", "grow"),), np.array([0]), np.array([-1]))
    values = {name: own.reshape(1, N.size, -1) for name, own in counts.items()}
    metrics = {name: METRICS[name] for name in values}
    found = fit_metrics(Experiment("grow", ("n",), N[:, None], tree, metrics, values), metrics)
    models = {name: own for name, (own,) in found.items() if isinstance(own, Model)}
    assert len(models) == len(counts)
    return models


# A vector that has four times the space when it is full, as blocks show; what is in order is not so where it ends.
BLOCKS = 2 * N + 16 * 4**STEPS + 6 * STEPS + 4
IN_ORDER = 8 * N + 768 * 4**STEPS - 8 * STEPS - 200


def test_functions_of_other_counts_are_taken() -> None:
    far = 36000.0
    steps = np.ceil(np.log2(far / 48) / 2)
    model = _models(blocks=BLOCKS, bytes_in_order=IN_ORDER)["bytes_in_order"]
    assert model.predict((far,)).value == 8 * far + 768 * 4**steps - 8 * steps - 200
    assert any(factor.steps for term in model.terms for factor in term.factors)
    alone = _models(bytes_in_order=IN_ORDER)["bytes_in_order"]
    assert alone.quality is not None and alone.quality.rms_relative > 1e-9


def test_counts_that_differ_from_them_are_left() -> None:
    """Neither what no such sum reproduces nor what chance changes gets the functions of others."""
    random = np.random.default_rng(2)
    other = IN_ORDER + np.array([0.0, 0, 1, 0, 0, 0])
    assert str(_models(blocks=BLOCKS, bytes_in_order=other)["bytes_in_order"]) == str(
        _models(bytes_in_order=other)["bytes_in_order"]
    )
    runs = np.round(IN_ORDER[:, None] * (1 + 0.01 * random.standard_normal((N.size, 5))))
    both = _models(blocks=np.repeat(BLOCKS[:, None], 5, axis=1), bytes_in_order=runs)
    assert str(both["bytes_in_order"]) == str(_models(bytes_in_order=runs)["bytes_in_order"])
