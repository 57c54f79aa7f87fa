# SPDX-License-Identifier: Apache-2.0
"""Other counts of a call path decide about p = 1 if each of them scatters."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model

P = np.array([1.0, 2, 4, 8, 16, 32, 64])
NOTE = "without p=1, which follows another formula"
# A sort of 16·p keys, as counted; 479335 blocks at p = 512.
BLOCKS = np.array([168.0, 865, 2007, 4186, 9809, 21569, 47124])
OTHERS = {
    "instructions": np.array([655.0, 3379, 7569, 15257, 35803, 76868, 166422]),
    "loads": np.array([141.0, 707, 1608, 3168, 7584, 16251, 35210]),
    "stores": np.array([39.0, 349, 707, 1607, 3417, 7098, 15302]),
}


def _models(counts: dict[str, FloatArray]) -> dict[str, Model]:
    """Return the models of the counts (C,) of a call path, by metric."""
    tree = CallTree((Region("sort", "sort"),), np.array([0]), np.array([-1]))
    values = {name: own.reshape(1, P.size, 1) for name, own in counts.items()}
    metrics = {name: METRICS[name] for name in values}
    found = fit_metrics(Experiment("sort", ("p",), P[:, None], tree, metrics, values), metrics)
    return {name: own for name, (own,) in found.items() if isinstance(own, Model)}


def test_what_most_counts_say_of_one_process_holds_for_all() -> None:
    alone = _models({"blocks": BLOCKS})["blocks"]
    assert NOTE not in alone.notes
    assert alone.predict((512.0,)).value == pytest.approx(545000, rel=0.01)
    model = _models({"blocks": BLOCKS, **OTHERS})["blocks"]
    assert NOTE in model.notes
    assert model.predict((512.0,)).value == pytest.approx(479335, rel=0.04)


def test_one_other_count_is_not_most() -> None:
    models = _models({"blocks": BLOCKS, "instructions": OTHERS["instructions"]})
    assert NOTE in models["instructions"].notes
    assert NOTE not in models["blocks"].notes


def test_exact_counts_keep_what_they_say_of_one_process() -> None:
    exact = 12 * P + 5 * np.log2(P) + 40
    model = _models({"blocks": exact, **OTHERS})["blocks"]
    assert str(model) == "12·p + 5·log2(p) + 40"
    assert model.notes == ()
