# SPDX-License-Identifier: Apache-2.0
"""Counters of nodes times weights of regions, quiet regions, and the state of threads in raw profiles."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_writer import QUIET, Node, Profile, Thread, Weights, counted
from quipu.agent.profile.reader import ProcessProfile, read_profile

BLOCKS = 2  # the column of the metric


def read(tmp_path: Path, profile: Profile) -> ProcessProfile:
    return read_profile(profile.write(tmp_path))


def test_effort_is_visits_and_counters_times_weights(tmp_path: Path) -> None:
    profile = read(tmp_path, counted())
    solve = 100 + 10 * 1 + 3 * 100 - 4 * 10
    of_thread = 50 + 3 * 1 + 1 * 100 - 2 * 10
    quiet = 1 + 6 * 1000 + 4 * 0
    assert profile.values["blocks"].tolist() == [0, 5 + 7, solve + quiet, 0, 0, of_thread + 2 * 1000 + 5, 9]
    assert profile.problems == ()


def test_quiet_regions_disappear_and_leave_their_effort_to_their_callers(tmp_path: Path) -> None:
    profile = read(tmp_path, counted())
    assert profile.region.tolist() == [0, 1, 2, 3, 0, 2, 4]
    assert profile.parent.tolist() == [-1, 0, 1, 2, -1, 4, 1]
    assert profile.values["visits"].tolist() == [0, 1, 10, 20, 0, 3, 1]
    assert profile.values["comm_size"].tolist() == [0, 0, 0, 2, 0, 9, 0]  # a maximum does not add up
    assert 5 not in profile.regions


def test_quiet_regions_below_quiet_regions_and_at_the_root(tmp_path: Path) -> None:
    nodes = [
        Node(1, 0, 1),
        Node(2, 1, 2, (1, 0, 10, 0)),
        Node(3, 2, 2, (1, 0, 100, 0)),
        Node(4, 3, 1, (1, 0, 1000, 0)),
        Node(5, 0, 2, (1, 0, 7, 0)),
    ]
    profile = read(tmp_path, Profile(nodes=nodes, regions={1: "main", 2: QUIET}))
    assert profile.parent.tolist() == [-1, 0, -1]
    assert profile.values["blocks"].tolist() == [110, 1000, 7]
    assert profile.values["visits"].tolist() == [1, 1, 1]


def test_sums_wrap_and_end_above_zero(tmp_path: Path) -> None:
    nodes = [Node(1, 0, 1, (1, 0, 3, 0), counters=((1 << 64) - 5, 1 << 63))]
    weights = [Weights(1, [[10], [-2], [2]])]
    profile = read(tmp_path, Profile(nodes=nodes, regions={1: "main"}, weights=weights))
    assert profile.values["blocks"].tolist() == [3 + 10 + 10]
    assert profile.problems == ()


def test_a_sum_below_zero_is_told(tmp_path: Path) -> None:
    profile = Profile(nodes=[Node(1, 0, 1, counters=(5,))], regions={1: "main"}, weights=[Weights(1, [[1], [-1]])])
    found = read(tmp_path, profile)
    assert found.values["blocks"].tolist() == [0]
    assert "1 weighted sums are below zero" in found.problems[0]
    assert found.damaged


def test_weights_cover_the_metrics_that_they_name(tmp_path: Path) -> None:
    metrics = [f"m{i}\t1\teffort\tsum\t" for i in range(6)]
    metrics[0] = "visits\t1\teffort\tsum\t"
    nodes = [
        Node(1, 0, 1, (2, 0, 0, 0, 0, 0), counters=(3,)),
        Node(2, 1, 2, (5, 1, 1, 1, 1, 1), counters=(7, 11)),
    ]
    weights = [
        Weights(1, [[1, 2, 3], [4, 5, 6]], metric=1),
        Weights(2, [[1, 1], [2, 2], [3, 3]], metric=4),
        Weights(9, [[1, 1, 1]], metric=3),
    ]
    profile = read(
        tmp_path,
        Profile(nodes=nodes, regions={1: "main", 2: "f"}, weights=weights, metrics=metrics, node_size=64 + 8 * 6),
    )
    expected = {1: [2 + 12, 1], 2: [4 + 15, 1], 3: [6 + 18, 1], 4: [0, 1 + 5 + 14 + 33], 5: [0, 1 + 5 + 14 + 33]}
    assert {i: profile.values[f"m{i}"].tolist() for i in expected} == expected
    assert profile.problems == ()


def test_threads_tell_the_active_node(tmp_path: Path) -> None:
    profile = read(tmp_path, counted())
    assert profile.threads.location.tolist() == [0, 1]
    assert profile.region[profile.threads.node].tolist() == [2, 2]
    assert profile.location[profile.threads.node].tolist() == [0, 1]
    assert profile.threads.last.tolist() == [1500, 1600]


def test_threads_in_nodes_of_many_chunks(tmp_path: Path) -> None:
    nodes = [Node(1, 0, 1)] + [Node(i, 1, i) for i in range(2, 300)]
    regions = {i: f"f{i}" for i in range(1, 300)}
    profile = read(tmp_path, Profile(nodes=nodes, regions=regions, threads=[Thread(277, 1), Thread(999, 2, 1)]))
    assert profile.region[profile.threads.node[0]] == 277
    assert profile.threads.node[1] == -1


@pytest.mark.parametrize(
    ("counters", "weights", "blocks", "problem"),
    [
        ((1, 2, 3), [Weights(1, [[0], [1]])], 1, "2 counters have no weights"),
        ((1, 2), [], 0, "2 counters have no weights"),
        ((0, 0), [], 0, ""),
        ((1,), [Weights(1, [[0], [1], [5]])], 1, ""),
        ((1,), [Weights(1, [[0], [1]]), Weights(1, [[0], [500]])], 1, ""),
        ((1, 2), [Weights(1, [[0], [1]]), Weights(1, [[9]], metric=5)], 1, "1 records of weights are damaged"),
    ],
)
def test_what_is_missing_is_told(
    tmp_path: Path, counters: tuple[int, ...], weights: list[Weights], blocks: int, problem: str
) -> None:
    nodes = [Node(1, 0, 1, (0, 0, 0, 0), counters=counters)]
    profile = read(tmp_path, Profile(nodes=nodes, regions={1: "main"}, weights=weights))
    assert profile.values["blocks"].tolist() == [blocks]
    assert problem in " ".join(profile.problems)
    assert bool(profile.problems) == bool(problem)


def test_counters_of_no_call_path_are_told(tmp_path: Path) -> None:
    nodes = [Node(1, 0, 1, counters=(1,)), Node(2, 77, 1, counters=(1,)), Node(1, 0, 1, counters=(5,))]
    profile = read(tmp_path, Profile(nodes=nodes, regions={1: "main"}, weights=[Weights(1, [[0], [1]])]))
    assert profile.values["blocks"].tolist() == [1]
    assert any("2 records of counters belong to no call path" in problem for problem in profile.problems)


def test_a_record_that_claims_more_than_its_chunk_ends_the_chunk(tmp_path: Path) -> None:
    room = (4096 - 64) // 16
    nodes = [Node(i, i - 1, 1, (0, 0, 0, 0), counters=(1,)) for i in range(1, 2 * room + 1)]  # two chunks of counters
    profile = Profile(nodes=nodes, regions={1: "main"}, weights=[Weights(1, [[0], [1]])])
    content = bytearray(profile.bytes())
    place = content.index(struct.pack("<IIQIIQ", 1, 1, 1, 2, 1, 1)) + 16 * 100
    for count in (0xFFFFFFFF, 2 * room, 2 * (room - 100)):
        content[place + 4 : place + 8] = struct.pack("<I", count)
        path = tmp_path / "profile-n1-1.quipu"
        path.write_bytes(content)
        found = read_profile(path)
        assert found.values["blocks"].sum() == 100 + room
        assert found.problems == ("1 chunks of counters or weights are damaged: the rest of each is left out",)


WORDS = st.integers(0, (1 << 64) - 1) | st.integers(0, 50)
SIGNED = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-50, 50)


@settings(max_examples=150)
@given(data=st.data())
def test_effort_is_that_of_the_formula(tmp_path: Path, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(SIGNED, min_size=1, max_size=5), min_size=1, max_size=4), label="weights")
    nodes = [Node(1, 0, 1)]
    for number in range(2, data.draw(st.integers(2, 12))):
        region = data.draw(st.integers(1, len(rows)))
        counters = data.draw(st.lists(WORDS, max_size=len(rows[region - 1]) - 1))
        values = (data.draw(st.integers(0, 1 << 62)), 0, data.draw(WORDS), 0)
        nodes.append(Node(number, number - 1, region, values, counters=counters))
    weights = []
    for region, of_region in enumerate(rows, start=1):
        cut = data.draw(st.integers(0, len(of_region)))
        for first, part in ((0, of_region[:cut]), (cut, of_region[cut:])):
            if part:
                weights.append(Weights(region, [[row] for row in part], first, BLOCKS))
    weights = data.draw(st.permutations(weights))
    profile = read(tmp_path, Profile(nodes=nodes, regions={i: f"f{i}" for i in range(1, 5)}, weights=weights))
    for node, found in zip(nodes, profile.values["blocks"].tolist(), strict=True):
        row = rows[node.region - 1]
        total = node.values[BLOCKS] + node.values[0] * row[0]
        total += sum(count * weight for count, weight in zip(node.counters, row[1:], strict=False))
        total %= 1 << 64
        assert found == (total if total < 1 << 63 else 0)
    assert profile.parent.tolist() == list(range(-1, len(nodes) - 1))


WHOLE = counted().bytes()


@settings(max_examples=400)
@given(
    changes=st.lists(st.tuples(st.integers(4096, len(WHOLE) - 4), st.integers(0, 0xFFFFFFFF)), max_size=8),
    places=st.lists(st.tuples(st.integers(2, 5), st.integers(0, 40), st.integers(0, 255)), max_size=8),
    length=st.just(len(WHOLE)) | st.integers(0, len(WHOLE)),
)
def test_mutated_records_give_a_profile(
    tmp_path: Path, changes: list[tuple[int, int]], places: list[tuple[int, int, int]], length: int
) -> None:
    content = bytearray(WHOLE)
    for position, value in changes:
        content[position : position + 4] = struct.pack("<I", value)
    for chunk, word, value in places:  # where the records are
        content[4096 * (chunk + 1) + 4 * word] = value
    path = tmp_path / "profile-n1-100.quipu"
    path.write_bytes(content[: max(4096, length)])
    profile = read_profile(path)
    assert (profile.parent < np.arange(profile.parent.size)).all()
    assert all((profile.values[name] >= 0).all() for name in ("visits", "blocks", "comm_size"))
    assert (profile.threads.node < profile.parent.size).all()
