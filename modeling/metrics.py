# SPDX-License-Identifier: Apache-2.0
"""The metrics of Quipu, read from the table of the runtime (agent/runtime/metrics.def)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, cast

from .experiment import Metric

_ROW = re.compile(r'^QUIPU_(WEIGHTED_)?METRIC\(\w+, "(.*?)", "(.*?)", "(.*?)", "(.*?)", "(.*?)"\)', re.MULTILINE)
_ROWS = _ROW.findall((Path(__file__).parents[1] / "agent" / "runtime" / "metrics.def").read_text(encoding="utf-8"))

_FURTHER = re.compile(r'^QUIPU_FURTHER_METRIC\((\w+), \w+, "(.*?)", "(.*?)", "(.*?)", "(.*?)", "(.*?)"\)', re.MULTILINE)
_FURTHER_ROWS = _FURTHER.findall(
    (Path(__file__).parents[1] / "agent" / "runtime" / "further_metrics.def").read_text(encoding="utf-8")
)

METRICS = {
    name: Metric(name, unit, cast(Literal["effort", "cost"], kind), cast(Literal["sum", "max"], over), description)
    for _, name, unit, kind, over, description in _ROWS
}
"""Metrics by name, in the order of the table. visits, time, bytes_sent and bytes_received are also names of Score-P."""

FURTHER = {
    name: Metric(name, unit, cast(Literal["effort", "cost"], kind), cast(Literal["sum", "max"], over), description)
    for _, name, unit, kind, over, description in _FURTHER_ROWS
}
"""Metrics that an option of `quipu run` enables, by name (agent/runtime/further_metrics.def)."""

OPTION_OF = {name: f"--{group.lower().replace('_', '-')}" for group, name, *_ in _FURTHER_ROWS}
"""This option, by name of the metric."""

BY_PASS = tuple(name for weighted, name, *_ in _ROWS if weighted)
WEIGHTED = len(BY_PASS)
"""BY_PASS: names of the metrics that the compiler pass counts, blocks first. WEIGHTED: their number, which is that of
the weights of a class of basic blocks in the binary."""


def metric_named(name: str) -> Metric:
    """Return the metric with this name; for an unknown name, an additive cost metric without a unit."""
    return METRICS.get(name) or FURTHER.get(name) or Metric(name)
