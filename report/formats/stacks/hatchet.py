# SPDX-License-Identifier: Apache-2.0
"""Write call trees for Hatchet, which reads them by `hatchet.GraphFrame.from_literal(json.load(file))`."""

from __future__ import annotations

import math
from typing import Any

from quipu.modeling.errors import ModelingError

from .weighted import WeightedStacks

# Largest depth of call paths. The module json reads nested values recursively: Python allows 1000 levels, and each
# level of calls needs two.
_DEEPEST = 400
_NO_METRICS = ("name", "node", "_hatchet_nid")  # names of columns that Hatchet reserves


def hatchet(stacks: WeightedStacks) -> list[dict[str, Any]]:
    """Return one nested object per root. It has exclusive values as `time` and inclusive values as `time (inc)`.

    Missing values are None. Raises ModelingError if call paths are too deep for readers of JSON.
    """
    tree, sample = stacks.tree, stacks.samples[0]
    if (levels := int(tree.depth.max(initial=0)) + 1) > _DEEPEST:
        raise ModelingError(f"call paths of {levels} levels: readers of JSON accept at most {_DEEPEST}; use folded")
    columns: dict[str, list[float]] = {}
    for metric in stacks.metrics:
        exclusive = sample.values[metric.name]
        name = f"metric {metric.name}" if metric.name in _NO_METRICS else metric.name
        columns[name] = exclusive.tolist()
        columns[f"{name} (inc)"] = tree.inclusive(exclusive, metric.over_locations).tolist()
    nodes: list[dict[str, Any]] = []
    roots: list[dict[str, Any]] = []
    for node, parent in enumerate(tree.parent.tolist()):
        region = tree.region_of(node)
        described = {
            "frame": {"name": region.display or "?", "type": region.kind.name.lower(), "linker_name": region.name}
            | ({"file": region.file, "line": region.line} if region.file else {}),
            "metrics": {name: None if math.isnan(column[node]) else column[node] for name, column in columns.items()},
            "children": [],
        }
        (roots if parent < 0 else nodes[parent]["children"]).append(described)
        nodes.append(described)
    return roots
