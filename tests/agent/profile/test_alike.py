# SPDX-License-Identifier: Apache-2.0
"""Profiles with equal layout give the same counters as a reader without a cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from quipu.agent.profile import alike
from quipu.agent.profile.alike import AlikeProfiles
from quipu.agent.profile.reader import ProcessProfile, read_profile

from ..profile_writer import Node, Profile, Weights

PLAIN = Profile(
    nodes=[
        Node(1, 0, 0),
        Node(2, 1, 1, (1, 5, 0, 0), counters=(7, 8)),
        Node(3, 2, 2, (4, 6, 0, 0), counters=(3,)),
        Node(4, 2, 3, (9, 0, 0, 0)),
    ],
    regions={1: "main", 2: "solve", 3: "left_out\x1f\x1f\x1f0\x1f0\x1f2"},
    weights=[Weights(1, [(10,), (1,), (2,)]), Weights(2, [(3,), (100,)]), Weights(3, [(4,)])],
    attributes={"host": "a"},
    sealed=True,
)


def wants(attributes: object) -> bool:
    return True


def with_values(profile: Profile, add: int) -> Profile:
    nodes = [
        replace(node, values=(node.values[0] + add, *node.values[1:]), counters=[own + add for own in node.counters])
        for node in profile.nodes
    ]
    return replace(profile, nodes=nodes, pid=100 + add, attributes={"host": f"h{add}"})


def renamed(profile: Profile) -> Profile:
    return replace(profile, regions={**profile.regions, 2: "other"})


def swapped_ids(profile: Profile) -> Profile:
    return replace(profile, regions={1: "main", 2: profile.regions[3], 3: "solve"})


def another_parent(profile: Profile) -> Profile:
    return replace(profile, nodes=[*profile.nodes[:3], replace(profile.nodes[3], parent=3)])


def counters_elsewhere(profile: Profile) -> Profile:
    nodes = list(profile.nodes)
    nodes[1], nodes[2] = replace(nodes[1], counters=(7,)), replace(nodes[2], counters=(3, 8))
    return replace(profile, nodes=nodes)


def other_weights(profile: Profile) -> Profile:
    return replace(profile, weights=[replace(profile.weights[0], rows=[(10,), (1,), (3,)]), *profile.weights[1:]])


def fewer_nodes(profile: Profile) -> Profile:
    return replace(profile, nodes=profile.nodes[:3])


def assert_same(found: ProcessProfile, expected: ProcessProfile) -> None:
    for name in ("path", "pid", "attributes", "started_epoch_ns", "regions"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("parent", "region", "location"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert found.counters is not None and expected.counters is not None
    assert found.counters.is_arranged_as(expected.counters)
    assert np.array_equal(found.counters.value, expected.counters.value)


def read_all(folder: Path, profiles: list[Profile]) -> tuple[list[ProcessProfile], int]:
    """Read profiles one after the other; return them, and how many were read as a whole."""
    reader = AlikeProfiles(wants)
    found = []
    with patch.object(alike, "read_profile", wraps=read_profile) as whole:
        for number, profile in enumerate(profiles):
            path = folder / f"profile-{number}.quipu"
            path.write_bytes(profile.bytes())
            found.append(reader.read(read_profile(path, call_paths=False)))
    for own in found:
        assert_same(own, read_profile(own.path, wants_counters=wants, values=False))
    return found, whole.call_count


def test_other_values(tmp_path: Path) -> None:
    found, whole = read_all(tmp_path, [PLAIN, *(with_values(PLAIN, add) for add in range(1, 5))])
    assert whole == 1
    assert len({own.counters.value.tobytes() for own in found if own.counters is not None}) == 5


@pytest.mark.parametrize(
    "change", [renamed, swapped_ids, another_parent, counters_elsewhere, other_weights, fewer_nodes]
)
def test_another_arrangement(tmp_path: Path, change: Callable[[Profile], Profile]) -> None:
    other = change(PLAIN)
    profiles = [PLAIN, other, with_values(PLAIN, 1), with_values(other, 2)]
    _, whole = read_all(tmp_path, profiles)
    assert whole == 2


def test_damaged_chunk(tmp_path: Path) -> None:
    path = tmp_path / "damaged.quipu"
    content = bytearray(with_values(PLAIN, 3).bytes())
    content[4096 + 4096 + 64 + 200] ^= 1  # in the chunk of nodes, which is the second
    path.write_bytes(content)
    reader = AlikeProfiles(wants)
    plain = tmp_path / "plain.quipu"
    plain.write_bytes(PLAIN.bytes())
    reader.read(read_profile(plain, call_paths=False))
    found = reader.read(read_profile(path, call_paths=False))
    expected = read_profile(path, wants_counters=wants, values=False)
    assert found.parent.size == expected.parent.size == 0


def test_more_arrangements_than_are_kept(tmp_path: Path) -> None:
    profiles = [replace(PLAIN, regions={**PLAIN.regions, 2: f"f{number}"}) for number in range(12)]
    _, whole = read_all(tmp_path, [*profiles, *profiles])
    assert whole == 12 + 4
