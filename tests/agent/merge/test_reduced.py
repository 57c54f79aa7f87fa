# SPDX-License-Identifier: Apache-2.0
"""The reduced file without MPI: the same run as from the profiles, and damaged files."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.launch.raw_folder import read_raw_folder
from quipu.agent.merge.reduced import read_reduced
from quipu.agent.merge.run import combine
from quipu.modeling.errors import FormatError
from reduced_writer import ID, RANKS, Section, packed, reduced_rank, sections, whole_rank, write_reduced

METADATA = RunMetadata({"p": 2}, exit_code=0)


def of(folder: Path, columns: bool) -> RunArchive:
    return combine(read_raw_folder(folder), METADATA, column_ranks=256 if columns else 0)


@pytest.mark.parametrize("columns", [True, False])
def test_what_came_after_the_reduction_is_added(tmp_path: Path, columns: bool) -> None:
    for name in ("reduced", "merged"):
        (tmp_path / name).mkdir()
    write_reduced(tmp_path / "reduced", columns)
    for rank in range(RANKS):
        whole_rank(rank).write(tmp_path / "merged")
    found, expected = of(tmp_path / "reduced", columns), of(tmp_path / "merged", columns)
    place = {found.tree.key(path): path for path in range(len(found.tree))}
    order = [place[expected.tree.key(path)] for path in range(len(expected.tree))]
    assert len(place) == len(order)
    assert (found.values is None) == (expected.values is None) == (not columns)
    later = {"main": 2 * 0.5e-9, "release": 2 * (4 * 2 + 5 * 0.5) * 1e-9}  # events of rests: whole_rank has none
    for name, statistics in expected.statistics.items():
        total = statistics.sum.copy()
        if name == "overhead":
            total += [later.get(expected.tree.region_of(path).name, 0.0) for path in range(len(order))]
        np.testing.assert_allclose(found.statistics[name].sum[order], total, rtol=1e-12)
        np.testing.assert_array_equal(found.statistics[name].ranks[order], statistics.ranks)
    assert found.metadata.overhead["visits"] == expected.metadata.overhead["visits"]
    assert found.metadata.overhead["time"] == pytest.approx(expected.metadata.overhead["time"])
    more = found.metadata.overhead["counters"] - expected.metadata.overhead["counters"]
    assert more == pytest.approx(sum(later.values()), rel=1e-6)


def changed(content: list[Section], tag: bytes, at: int, value: int) -> bytes:
    """Return the file with four bytes of a section changed, and right checksums."""
    section = dict(content)[tag]
    other = section[:at] + struct.pack("<I", value) + section[at + 4 :]
    return packed((name, other if name == tag else entry) for name, entry in content)


@pytest.mark.parametrize(
    ("columns", "tag", "at", "value"),
    [
        (True, b"HEAD", 0, 1),
        (True, b"HEAD", 4, 3),
        (True, b"HEAD", 12, 1 << 31),
        (True, b"TREE", 0, 5),
        (True, b"TREE", 24, 9),
        (True, b"COLS", 0, 7),
        (True, b"COLS", 4, 1 << 30),
        (False, b"STAT", 4, 1 << 30),
        (False, b"OPEN", 0, 1 << 20),
    ],
)
def test_a_file_that_makes_no_sense_is_an_error(tmp_path: Path, columns: bool, tag: bytes, at: int, value: int) -> None:
    path = tmp_path / f"reduced-{ID}.quipu"
    path.write_bytes(changed(write_reduced(tmp_path, columns), tag, at, value))
    with pytest.raises(FormatError, match=r"reduced-.* (is damaged|has version)"):
        read_reduced(path)
    assert "the profiles of the processes were merged instead" in of(tmp_path, columns).metadata.problems[0]


def test_times_longer_than_the_run_are_read_from_the_profiles(tmp_path: Path) -> None:
    """A clock jumped; a merge of profiles limits their times."""
    ranks = [reduced_rank(rank) for rank in range(RANKS)]
    for profile in ranks:
        node = profile.nodes[2]
        profile.nodes = [*profile.nodes[:2], replace(node, values=(10, 10**10, *node.values[2:])), *profile.nodes[3:]]
        profile.write(tmp_path)
    (tmp_path / f"reduced-{ID}.quipu").write_bytes(packed(sections(False, ranks)))
    assert not combine(read_raw_folder(tmp_path), replace(METADATA, seconds=10.0), column_ranks=0).metadata.problems
    found = combine(read_raw_folder(tmp_path), replace(METADATA, seconds=1.0), column_ranks=0)
    assert found.metadata.problems[0].startswith("clocks disagree (times of ranks are longer than the run)")


def test_numbers_beyond_the_range_are_read_from_the_profiles(tmp_path: Path) -> None:
    write_reduced(tmp_path, True)
    path = tmp_path / "profile-n1-101.quipu"
    content = path.read_bytes()
    assert b"0 500 3 0 0 0 1" in content
    path.write_bytes(content.replace(b"0 500 3 0 0 0 1", b"9" * 14 + b"\0"))
    assert of(tmp_path, True).metadata.ranks == RANKS
