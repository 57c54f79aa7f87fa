# SPDX-License-Identifier: Apache-2.0
"""Read raw profiles, also damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_writer import Node, Profile, rank_profile
from quipu.agent.profile.reader import Clock, ProcessProfile, ProfileState, read_profile
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import RegionKind

WHOLE = rank_profile(0).bytes()


def read(tmp_path: Path, content: bytes) -> ProcessProfile:
    path = tmp_path / "profile-n1-100.quipu"
    path.write_bytes(content)
    return read_profile(path)


def test_reads_everything(tmp_path: Path) -> None:
    profile = read(tmp_path, WHOLE)
    assert (profile.pid, profile.state, profile.clock) == (100, ProfileState.ENDED, Clock.NANOSECONDS)
    assert profile.parent.tolist() == [-1, 0, 1, 2, -1, 4, 1]
    assert profile.region.tolist() == [0, 1, 2, 3, 0, 2, 4]
    assert profile.location.tolist() == [0, 0, 0, 0, 1, 1, 0]
    assert profile.values["blocks"].tolist() == [0, 5, 100, 0, 0, 50, 9]
    np.testing.assert_allclose(profile.values["time"], np.array([7, 1000, 2000, 3000, 0, 500, 100]) * 1e-9)
    assert profile.regions[2].name == "_Z5solvei"
    assert (profile.regions[2].display, profile.regions[2].line) == ("solve(int)", 3)
    assert profile.regions[3].kind is RegionKind.MPI
    assert profile.attributes["host"] == "n1"
    assert profile.metrics[3].over_locations == "max"
    assert profile.problems == ()
    assert not profile.damaged


def test_time_is_calibrated_by_the_two_pairs_of_readings(tmp_path: Path) -> None:
    profile = read(tmp_path, rank_profile(0, clock=2).bytes())  # 1000 ticks are 500 ns
    assert profile.values["time"][1] == pytest.approx(1000 * 0.5e-9)


def test_time_without_a_second_reading_is_unknown(tmp_path: Path) -> None:
    profile = read(tmp_path, rank_profile(0, clock=2, ticks=(1000, 0), nanoseconds=(5, 0), state=0).bytes())
    assert np.isnan(profile.values["time"]).all()
    assert "time is unknown" in profile.problems[0]
    assert profile.values["blocks"].sum() == 164
    assert not profile.damaged


def test_no_clock_means_no_time(tmp_path: Path) -> None:
    profile = read(tmp_path, rank_profile(0, clock=0).bytes())
    assert "time" not in profile.values
    assert "time" not in [metric.name for metric in profile.metrics]


def test_many_chunks(tmp_path: Path) -> None:
    nodes = [Node(1, 0, 1)] + [Node(i, 1, 2, (i, 0, 1, 0)) for i in range(2, 2000)]
    profile = read(tmp_path, Profile(nodes=nodes, regions={1: "main", 2: "f" * 300}).bytes())
    assert profile.values["visits"].sum() == 1 + sum(range(2, 2000))
    assert profile.regions[2].display == "f" * 300


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: its process is not measured"),
        (bytes(8192), "is empty: its process is not measured"),
        (b"QUIPUPRF" + bytes(100), "truncated"),
        (rank_profile(0, version=1).bytes(), "version 1"),
        (rank_profile(0, state=9).bytes(), "unknown state"),
        (rank_profile(0, node_size=8).bytes(), "records of 8 bytes"),
        (rank_profile(0, metrics=["visits\t1\teffort"]).bytes(), "metric entry"),
        (rank_profile(0, metrics=["a\t1\tcost\tsum\t"] * 2).bytes(), "twice"),
        (rank_profile(0, metrics=["rank\t1\tcost\tsum\t"]).bytes(), "metric name"),
        (WHOLE[:16] + struct.pack("<I", 0xFFFFFFFF) + WHOLE[20:], "chunks of"),
        (WHOLE[:12] + struct.pack("<I", 0) + WHOLE[16:], "header of"),
        (WHOLE[:24] + struct.pack("<I", 77) + WHOLE[28:], "promises 77 metrics"),
    ],
)
def test_unusable_files(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message) as error:
        read(tmp_path, content)
    assert "profile-n1-100.quipu" in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        read_profile(tmp_path / "none")


def test_truncated_file_keeps_what_is_there(tmp_path: Path) -> None:
    nodes = [Node(i, 0, 1) for i in range(1, 200)]
    content = Profile(nodes=nodes, regions={1: "main"}).bytes()
    profile = read(tmp_path, content[: len(content) - 6000])
    assert 0 < profile.region.size < 199
    assert profile.damaged
    assert "truncated" in profile.problems[0]


def test_broken_places_in_the_tree_are_left_out_with_all_below(tmp_path: Path) -> None:
    nodes = [
        Node(1, 0, 1),
        Node(2, 1, 1),
        Node(3, 99, 1),  # no such parent
        Node(4, 3, 1),
        Node(5, 4, 1),
        Node(6, 7, 1),  # a cycle
        Node(7, 6, 1),
        Node(8, 8, 1),  # its own parent
        Node(2, 1, 1, (50, 0, 0, 0)),  # a second node of this id
    ]
    profile = read(tmp_path, Profile(nodes=nodes, regions={1: "main"}).bytes())
    assert profile.parent.tolist() == [-1, 0]
    assert profile.values["visits"].tolist() == [1, 1]
    assert profile.problems == ("7 call-path records have no known place in the tree and were left out",)


def test_counts_of_unnamed_regions_are_kept(tmp_path: Path) -> None:
    nodes = [Node(1, 0, 1), Node(2, 1, 5, (3, 0, 0, 0)), Node(3, 1, 1 << 63, (4, 0, 0, 0))]
    profile = read(tmp_path, Profile(nodes=nodes, regions={1: "main"}).bytes())
    assert profile.values["visits"].sum() == 8
    assert profile.regions[5].display == "(unknown region)"
    assert "2 regions have no name" in profile.problems[0]


def test_a_counter_beyond_the_range_is_told(tmp_path: Path) -> None:
    profile = read(tmp_path, Profile(nodes=[Node(1, 0, 1, (1 << 63, 0, 0, 0))], regions={1: "main"}).bytes())
    assert profile.values["visits"].tolist() == [(1 << 63) - 1]
    assert "beyond 2^63" in profile.problems[0]


def test_lost_events_and_errors_of_the_runtime_are_told(tmp_path: Path) -> None:
    profile = read(tmp_path, rank_profile(0, lost=3, error="No space left on device").bytes())
    assert profile.problems == (
        "3 events did not fit into the profile and are not counted",
        "No space left on device",
    )


def test_senseless_text_is_left_out(tmp_path: Path) -> None:
    regions = {
        1: "main",
        2: "a\x1fb\x1fc\x1fnot a line\x1f0\x1f0",
        3: "a\x1fb\x1fc\x1f1\x1f9\x1f0",
        4: "a\x1fb\x1fc\x1f1\x1f0",
    }
    profile = read(tmp_path, Profile(nodes=[Node(1, 0, 1)], regions=regions).bytes())
    assert len(profile.problems) == 3
    assert profile.regions[1].name == "main"


@settings(max_examples=400)
@given(
    changes=st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=12),
    header=st.lists(st.tuples(st.integers(8, 103), st.integers(0, 255)), max_size=3),
    length=st.one_of(st.just(len(WHOLE)), st.integers(0, len(WHOLE))),
)
def test_mutated_bytes_give_a_profile_or_a_format_error(
    tmp_path: Path, changes: list[tuple[int, int]], header: list[tuple[int, int]], length: int
) -> None:
    content = bytearray(WHOLE)
    for position, value in [*changes, *header]:
        content[position] = value
    try:
        profile = read(tmp_path, bytes(content[:length]))
    except FormatError:
        return
    assert (profile.parent < np.arange(profile.parent.size)).all()
    assert set(np.unique(profile.region)) - {0} == set(profile.regions)
