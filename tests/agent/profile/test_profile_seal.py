# SPDX-License-Identifier: Apache-2.0
"""Checksums of finished profiles: changes are detected, and the rest is used."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_writer import Node, Profile, Weights, counted, rank_profile
from quipu.agent.profile.reader import ProcessProfile, read_profile
from quipu.modeling.errors import FormatError

PAGE = 4096
NODES = [Node(i, i // 2, 1 + i % 3, (i, 0, 0, 0), counters=(i,)) for i in range(1, 400)]
WEIGHTS = [Weights(region, [[0], [1]]) for region in (1, 2, 3)]
LONG = Profile(nodes=NODES, regions={1: "main", 2: "f", 3: "g"}, weights=WEIGHTS, sealed=True)


def sealed() -> bytes:
    profile = counted()
    profile.sealed = True
    return profile.bytes()


def read(tmp_path: Path, content: bytes) -> ProcessProfile:
    path = tmp_path / "profile-n1-100.quipu"
    path.write_bytes(content)
    return read_profile(path)


def flipped(content: bytes, position: int, bit: int = 0) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 1 << bit
    return bytes(changed)


def test_a_sealed_profile_is_read_as_it_is(tmp_path: Path) -> None:
    with_seal, without = read(tmp_path, sealed()), read(tmp_path, counted().bytes())
    assert with_seal.problems == ()
    assert with_seal.values["blocks"].tolist() == without.values["blocks"].tolist()


WHOLE = sealed()


@settings(max_examples=400)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 7))
def test_every_flipped_bit_is_told(tmp_path: Path, position: int, bit: int) -> None:
    offset = position % PAGE
    used = struct.unpack_from("<I", WHOLE, position - offset + 8)[0]
    try:
        profile = read(tmp_path, flipped(WHOLE, position, bit))
    except FormatError:
        assert position < PAGE
        return
    if position < PAGE or offset < 64 + used:
        assert profile.problems
        assert profile.damaged
    else:
        assert profile.problems == ()  # room that was never filled


def test_chunks_that_were_changed_are_left_out(tmp_path: Path) -> None:
    content = LONG.bytes()
    first = 2 * PAGE  # header, text, nodes
    assert struct.unpack_from("<I", content, first)[0] == 1
    profile = read(tmp_path, flipped(content, first + PAGE + 500))
    assert profile.problems[0].startswith("1 chunks of call paths or counters do not fit their checksums")
    room = (PAGE - 64) // LONG.node_size
    gone = set(range(room + 1, 2 * room + 1))
    for node in range(room + 1, 400):
        if node // 2 in gone:
            gone.add(node)
    assert profile.values["visits"].tolist() == [i for i in range(1, 400) if i not in gone]


def test_a_chunk_that_is_all_zero_is_missed(tmp_path: Path) -> None:
    content = LONG.bytes()
    blank = content[: 3 * PAGE] + bytes(PAGE) + content[4 * PAGE :]
    assert "1 chunks of call paths or counters do not fit" in read(tmp_path, blank).problems[0]


def test_names_that_were_changed_are_used_and_told(tmp_path: Path) -> None:
    content = LONG.bytes()
    profile = read(tmp_path, flipped(content, content.index(b"main")))
    assert profile.problems == ("1 chunks of text do not fit their checksums: names may be wrong",)
    assert profile.regions[1].name == "lain"
    assert profile.values["visits"].size == 399


@pytest.mark.parametrize("pages", [3, 5])
def test_a_file_that_ends_between_two_chunks_is_truncated(tmp_path: Path, pages: int) -> None:
    profile = read(tmp_path, LONG.bytes()[: pages * PAGE])
    assert "the file is truncated" in profile.problems[0]
    assert 0 < profile.values["visits"].size < 399


def test_a_truncated_chunk_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    profile = read(tmp_path, LONG.bytes()[: 3 * PAGE - 1000])
    assert "the file is truncated" in profile.problems[0]
    assert profile.values["visits"].size == (PAGE - 64 - 1000) // LONG.node_size


def test_a_damaged_header_is_told_and_the_rest_used(tmp_path: Path) -> None:
    whole = rank_profile(0, sealed=True).bytes()
    profile = read(tmp_path, flipped(whole, whole.index(b"comm_size")))
    assert profile.problems == (
        "the header does not fit its checksum: it is damaged, and metrics and times may be wrong",
    )
    assert profile.values["blocks"].sum() == 164
