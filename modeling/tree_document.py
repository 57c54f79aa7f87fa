# SPDX-License-Identifier: Apache-2.0
"""Convert call trees to JSON documents and back: regions and call paths become lists of objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .documents import Whole
from .errors import FormatError, ModelingError
from .experiment import CallTree, Region, RegionKind
from .limits import reading


@dataclass(frozen=True)
class RegionEntry:
    """A region in a document. kind: the name in RegionKind, in lower case."""

    name: str
    display: str
    kind: str
    file: str = ""
    line: Whole = 0


@dataclass(frozen=True)
class PathEntry:
    """A call path in a document. region: index of its region. parent: index of its caller; -1 for a root."""

    region: Whole
    parent: Whole


def tree_json(tree: CallTree) -> dict[str, Any]:
    """Return the entries "regions" and "callpaths" of a document. Call paths also contain their text, "label"."""
    return {
        "regions": [
            {"name": r.name, "display": r.display, "kind": r.kind.name.lower(), "file": r.file, "line": r.line}
            for r in tree.regions
        ],
        "callpaths": [
            {"region": int(region), "parent": int(parent), "label": tree.label(path)}
            for path, (region, parent) in enumerate(zip(tree.region, tree.parent, strict=True))
        ],
    }


def tree_of(regions: Sequence[RegionEntry], callpaths: Sequence[PathEntry], source: object) -> CallTree:
    """Return the call tree of a document. source: name of the file in errors. Raises FormatError if it is invalid."""
    for own in regions:
        if own.kind.upper() not in RegionKind.__members__:
            raise FormatError(source, f"region kind {own.kind!r} is unknown")
    found = tuple(Region(r.name, r.display, RegionKind[r.kind.upper()], r.file, r.line) for r in regions)
    region, parent = (
        np.array([getattr(own, name) for own in callpaths], dtype=np.int64) for name in ("region", "parent")
    )
    try:
        tree = CallTree(found, region, parent)
    except ModelingError as error:
        raise FormatError(source, str(error)) from None
    with reading(source) as cost:
        cost.check_depth(int(tree.depth.max(initial=0)))
    return tree
