# SPDX-License-Identifier: Apache-2.0
"""Merge the partners of ranks to the communication matrix of a run, and read it back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from profile_writer import rank_profile
from quipu.agent.archive.communication_table import FILE, read_communication
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.archive.tables import write_table
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import FormatError


def merged(folder: Path, *partners: dict[str, str]) -> RunArchive:
    raw = folder / "raw"
    raw.mkdir()
    for rank, texts in enumerate(partners):
        profile = rank_profile(rank, len(partners))
        others = {key: text for key, text in profile.attributes.items() if not key.startswith("partners:")}
        replace(profile, attributes=others | texts).write(raw)
    return merge_run(raw, folder / "runs", RunMetadata({}, command=("./app",), exit_code=0))


def pairs(archive: RunArchive) -> list[tuple[int, ...]]:
    found = read_communication(archive.path)
    assert found is not None
    return list(
        zip(*(getattr(found, name).tolist() for name in ("sender", "receiver", "bytes", "messages")), strict=True)
    )


def test_both_directions_of_all_ranks_add_up(tmp_path: Path) -> None:
    archive = merged(
        tmp_path,
        {"partners:0": "1:100:2:0:0 0:5:1:0:0", "partners:1": "*:9:1:7:1"},
        {"partners:0": "0:0:0:30:3 1:0:4:0:0"},  # gets from rank 0
    )
    assert archive.metadata.complete
    assert pairs(archive) == [(-1, 0, 7, 1), (0, -1, 9, 1), (0, 0, 5, 1), (0, 1, 130, 5), (1, 1, 0, 4)]


def test_a_run_without_partners_has_no_matrix(tmp_path: Path) -> None:
    archive = merged(tmp_path, {}, {})
    assert read_communication(archive.path) is None
    assert not (archive.path / FILE).exists()


@pytest.mark.parametrize(
    "text", ["1:2:3", "x:1:1:1:1", "1:1:1:1:-1", "1:" + "9" * 30 + ":1:1:1", "1:1:1:1:1:1", "9999999999:1:1:1:1"]
)
def test_nonsense_is_left_out_and_said(tmp_path: Path, text: str) -> None:
    archive = merged(tmp_path, {"partners:0": f"1:8:1:0:0 {text}"}, {})
    assert pairs(archive) == [(0, 1, 8, 1)]
    assert any("contains no partners" in problem for problem in archive.metadata.problems)


@pytest.mark.parametrize(
    ("column", "values"), [("sender", [1, 0]), ("receiver", [-2, 1]), ("bytes", [-1, 1]), ("messages", [1, -5])]
)
def test_a_damaged_table_is_refused(tmp_path: Path, column: str, values: list[int]) -> None:
    archive = merged(tmp_path, {"partners:0": "1:8:1:0:0"}, {"partners:0": "0:8:1:0:0"})
    columns = {name: np.array([0, 1]) for name in ("sender", "receiver", "bytes", "messages")} | {
        column: np.array(values)
    }
    kinds = {"sender": "int32", "receiver": "int32", "bytes": "int64", "messages": "int64"}
    (archive.path / "SHA256SUMS").unlink(missing_ok=True)
    write_table(archive.path / FILE, {name: (kinds[name], columns[name]) for name in kinds})
    with pytest.raises(FormatError, match=FILE):
        read_communication(archive.path)
