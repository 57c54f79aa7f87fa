# SPDX-License-Identifier: Apache-2.0
"""The table of metrics in the header of a profile has room for all that a run can count."""

from __future__ import annotations

import numpy as np
from quipu.agent.layout import LAYOUT
from quipu.modeling.experiment import Metric
from quipu.modeling.metrics import FURTHER, METRICS

COUNTERS = [Metric(f"counter_{number:08}", "1", "cost", "sum", "counter, by samples") for number in range(16)]
SAMPLER = [
    Metric("samples", "1", "cost", "sum", "samples in this call path"),
    Metric("task_clock", "ns", "cost", "sum", "processor time, by samples"),
]


def test_all_metrics_of_a_run_fit_into_the_header() -> None:
    metrics = [*METRICS.values(), *SAMPLER, *COUNTERS, *FURTHER.values()]
    lines = [
        f"{one.name}\t{one.unit}\t{one.kind}\t{one.over_locations}\t{one.description}\n".encode() for one in metrics
    ]
    header = np.dtype(LAYOUT.record("profile_header"))
    assert sum(map(len, lines)) < header["metrics"].itemsize
