# SPDX-License-Identifier: Apache-2.0
"""The layout of profiles in Python equals the structs and enums of the runtime."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.layout import LAYOUT
from quipu.agent.profile.chunks import ChunkType
from quipu.agent.profile.reader import Clock, ProfileState
from quipu.modeling.experiment import RegionKind

DEFINITION = (Path(__file__).parents[3] / "agent" / "runtime" / "profile.def").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "size"), re.findall(r"^QUIPU_STRUCT\((\w+), (\d+)\)", DEFINITION, re.MULTILINE))
def test_records_have_no_holes(name: str, size: str) -> None:
    assert np.dtype(LAYOUT.record(name)).itemsize == int(size)


@pytest.mark.parametrize(
    ("enum", "name", "prefix"),
    [
        (ChunkType, "chunk_type", "CHUNK_"),
        (ProfileState, "profile_state", ""),
        (Clock, "profile_clock", "CLOCK_"),
        (RegionKind, "kind", ""),
    ],
)
def test_enums_are_complete(enum: type[Enum], name: str, prefix: str) -> None:
    body = DEFINITION.split(f"QUIPU_ENUM({name})")[1].split("QUIPU_END")[0]
    values = {key: int(number) for key, number in re.findall(r"QUIPU_VALUE\((\w+), (\d+)\)", body)}
    assert values == {prefix + member.name: member.value for member in enum}


def test_places_of_what_never_changes() -> None:
    """The fields that identify the version of a profile must keep their position."""
    header = np.dtype(LAYOUT.record("profile_header"))
    assert header.fields is not None
    places = {name: header.fields[name][1] for name in ("magic", "version", "header_size", "crc")}
    assert places == {"magic": 0, "version": 8, "header_size": 12, "crc": 4064}
    assert LAYOUT.packed("profile_text").size == 16
