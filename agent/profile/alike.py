# SPDX-License-Identifier: Apache-2.0
"""Read the counters of many profiles of one program, and reuse the arrangement of earlier files.

Ranks of one program usually have the same call paths with the same counters. Then their files differ only in values at
the same positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.experiment import IntArray, Metric

from .chunks import Chunk, ChunkType
from .counters import KeptCounters
from .effort import Words, counter_places, words_of
from .nodes import node_layout, read_nodes
from .ranks import WantsCounters
from .reader import ProcessProfile, ProfileHeader, read_parts, read_profile

_ARRANGED = frozenset({ChunkType.NODES, ChunkType.COUNTERS, ChunkType.WEIGHTS})
_STRUCTURE = ("id", "parent", "region", "owner")
_NOTHING = np.zeros(1, dtype=np.uint64)
_MOST_KNOWN = 8
"""Most stored arrangements. A profile with a further arrangement is read separately."""


@dataclass(frozen=True, eq=False)
class _Content:
    """The parts of a file that determine the arrangement of its counters, and the values.

    names: digest of the regions; metrics, node_size: of the header; bounds: location and size of each chunk; structure,
    visits: of all nodes, in the order of the file; words: of all chunks of counters; ends: end of each chunk in them.
    """

    names: bytes
    metrics: tuple[Metric, ...]
    node_size: int
    bounds: tuple[tuple[int, int, int], ...]
    weights: tuple[bytes, ...]
    structure: tuple[NDArray[np.generic], ...]
    visits: Words
    words: Words
    ends: IntArray

    def is_arranged_as(self, other: _Content, head: IntArray) -> bool:
        """Return whether the files differ in values only. head: where records of counters begin."""
        return (
            (self.names, self.metrics, self.node_size) == (other.names, other.metrics, other.node_size)
            and self.bounds == other.bounds
            and self.weights == other.weights
            and np.array_equal(self.words[head], other.words[head])
            and all(map(np.array_equal, self.structure, other.structure))
        )


@dataclass(frozen=True, eq=False)
class _Known:
    """A profile, and the places of its values in files with the same arrangement.

    head: as in `_Content.is_arranged_as`; visited: records of the nodes; counted: words of the counters.
    """

    profile: ProcessProfile
    counters: KeptCounters
    content: _Content
    head: IntArray
    visited: IntArray
    counted: IntArray

    def of(self, head: ProcessProfile, content: _Content) -> ProcessProfile:
        """Return the profile of a file with the same arrangement."""
        value = np.concatenate((content.visits[self.visited], content.words[self.counted], _NOTHING))
        return replace(
            self.profile,
            path=head.path,
            pid=head.pid,
            attributes=head.attributes,
            started_epoch_ns=head.started_epoch_ns,
            counters=replace(self.counters, value=value),
        )


class AlikeProfiles:
    """Reads the counters of profiles, one profile after the other."""

    def __init__(self, wants_counters: WantsCounters) -> None:
        """Create an empty reader. wants_counters: as in `read_profile`."""
        self._wants = wants_counters
        self._known: list[_Known] = []

    def read(self, head: ProcessProfile) -> ProcessProfile:
        """Return a profile like `read_profile` with counters and without values. Raises FormatError.

        head: the same profile, read without call paths. Profiles with the same arrangement share all arrays except the
        values of their counters.
        """
        header, chunks = read_parts(head.path, _ARRANGED, [])
        content = _content(head.names, header, chunks)
        for known in self._known:
            if content.is_arranged_as(known.content, known.head):
                return known.of(head, content)
        profile = read_profile(head.path, wants_counters=self._wants, values=False)
        if profile.counters is not None and profile.names == head.names and len(self._known) < _MOST_KNOWN:
            self._known.append(_known(profile, profile.counters, content, chunks[ChunkType.NODES]))
        return profile


def _content(names: bytes, header: ProfileHeader, chunks: Mapping[ChunkType, Sequence[Chunk]]) -> _Content:
    node_size = header.number("node_size")
    layout = node_layout(node_size, len(header.metrics))
    nodes = [np.frombuffer(c.content, layout, count=len(c.content) // node_size) for c in chunks[ChunkType.NODES]]
    nodes = nodes or [np.zeros(0, dtype=layout)]
    visits = next((number for number, metric in enumerate(header.metrics) if metric.name == "visits"), 0)
    return _Content(
        names,
        header.metrics,
        node_size,
        tuple((kind, c.location, len(c.content)) for kind in sorted(_ARRANGED) for c in chunks[kind]),
        tuple(chunk.content for chunk in chunks[ChunkType.WEIGHTS]),
        tuple(np.concatenate([piece[name] for piece in nodes]) for name in _STRUCTURE),
        np.concatenate([piece["counts"][:, visits] for piece in nodes]),
        *words_of(chunks[ChunkType.COUNTERS]),
    )


def _known(profile: ProcessProfile, kept: KeptCounters, content: _Content, chunks: Sequence[Chunk]) -> _Known:
    nodes = read_nodes(chunks, content.node_size, len(content.metrics), [])
    places = counter_places(content.words, content.ends, nodes, [])
    ids = content.structure[0]
    order = np.argsort(ids, kind="stable")  # the first record with an id counts
    visited = order[np.searchsorted(ids[order], nodes.id)]
    return _Known(profile, kept, content, places.head, visited, places.value)
