# SPDX-License-Identifier: Apache-2.0
"""Write profiles for https://www.speedscope.app (file-format-spec.ts)."""

from __future__ import annotations

from typing import Any

from quipu.modeling.experiment import Metric, Region

from .weighted import Sample, WeightedStacks, whole_unit

_UNITS = ("nanoseconds", "bytes")


def speedscope(stacks: WeightedStacks) -> dict[str, Any]:
    """Return one profile of type "sampled" per metric and sample. Frames are regions, weights are exclusive values."""
    return {
        "exporter": "quipu",
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": stacks.title,
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(region) for region in stacks.tree.regions]},
        "profiles": [_profile(stacks, metric, sample) for metric in stacks.metrics for sample in stacks.samples],
    }


def _frame(region: Region) -> dict[str, Any]:
    place = {"file": region.file} if region.file else {}
    return {"name": region.display, **place, **({"line": region.line} if region.line else {})}


def _profile(stacks: WeightedStacks, metric: Metric, sample: Sample) -> dict[str, Any]:
    pairs = [(chain, weight) for chain, weight in zip(stacks.chains, stacks.weights(metric, sample), strict=True)]
    unit = whole_unit(metric)
    return {
        "type": "sampled",
        "name": f"{metric.name}, {sample.name}",
        "unit": unit if unit in _UNITS else "none",
        "startValue": 0,
        "endValue": sum(weight for _, weight in pairs),
        "samples": [list(chain) for chain, weight in pairs if weight],
        "weights": [weight for _, weight in pairs if weight],
    }
