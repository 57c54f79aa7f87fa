# SPDX-License-Identifier: Apache-2.0
"""Read the counters of the profiles of many ranks of one program fast.

Ranks of one program usually have the same call paths with the same counters. Their files then have the same
arrangement: they differ only in the values at the same positions. For such a file, only the values are read. Everything
else comes from an earlier file with the same arrangement.
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
"""Largest number of stored arrangements. A profile with a further arrangement is read completely."""


@dataclass(frozen=True, eq=False)
class _Content:
    """The parts of a file that determine its arrangement, and its values.

    - names: digest of the regions. metrics, node_size (bytes of a node): from the header.
    - bounds: type, location and size (bytes) of each chunk. weights: content of each chunk with weights.
    - structure: id, parent, region and owner of all nodes, each of shape (nodes,), in the order of the file.
    - visits: of all nodes, shape (nodes,). words: content of all chunks of counters, as 64-bit numbers. ends: the index
      in `words` at which each chunk ends.
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
        """Return whether two files differ only in their values. head: indices in `words` of the heads of the records.

        The head of a record of counters contains its node and its number of counters.
        """
        return (
            (self.names, self.metrics, self.node_size) == (other.names, other.metrics, other.node_size)
            and self.bounds == other.bounds
            and self.weights == other.weights
            and np.array_equal(self.words[head], other.words[head])
            and all(map(np.array_equal, self.structure, other.structure))
        )


@dataclass(frozen=True, eq=False)
class _Known:
    """A profile that has been read, and the positions of the values in files with the same arrangement.

    head: as in `_Content.is_arranged_as`. visited: index in `_Content.visits` of each node of the profile. counted:
    index in `_Content.words` of each counter of the profile.
    """

    profile: ProcessProfile
    counters: KeptCounters
    content: _Content
    head: IntArray
    visited: IntArray
    counted: IntArray

    def of(self, head: ProcessProfile, content: _Content) -> ProcessProfile:
        """Return the profile of another file with the same arrangement. head: this profile without its call paths."""
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
    """Reads the counters of profiles, one after the other, and remembers their arrangements."""

    def __init__(self, wants_counters: WantsCounters) -> None:
        """Create a reader without arrangements. wants_counters: as in `read_profile`."""
        self._wants = wants_counters
        self._known: list[_Known] = []

    def read(self, head: ProcessProfile) -> ProcessProfile:
        """Return a profile as `read_profile` does with `values=False`. Raises FormatError for an invalid file.

        head: the same profile, read without call paths. Returned profiles with the same arrangement share all arrays
        except the values of their counters.
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
    order = np.argsort(ids, kind="stable")  # if records have the same id, the first one in the file counts
    visited = order[np.searchsorted(ids[order], nodes.id)]
    return _Known(profile, kept, content, places.head, visited, places.value)
