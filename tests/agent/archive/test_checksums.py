# SPDX-License-Identifier: Apache-2.0
"""Archives that were changed after they were written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from profile_writer import rank_profile
from quipu.agent.archive.class_tables import read_source
from quipu.agent.archive.communication_table import read_communication
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive, read_metadata
from quipu.agent.merge.experiment import scan_runs
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import FormatError

FILES = ("run.json", "regions.parquet", "callpaths.parquet", "values.parquet", "statistics.parquet", "ranks.parquet")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    raw = tmp_path / "raw"
    raw.mkdir()
    for rank in (0, 1):
        rank_profile(rank).write(raw)
    return merge_run(raw, tmp_path, RunMetadata({"p": 2}, exit_code=0)).path


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_anywhere_is_an_error_of_the_file(archive: Path, name: str) -> None:
    content = (archive / name).read_bytes()
    for position in range(0, len(content), max(1, len(content) // 50)):
        changed = bytearray(content)
        changed[position] ^= 1 << position % 8
        (archive / name).write_bytes(changed)
        with pytest.raises(FormatError, match="does not fit its checksum in SHA256SUMS") as error:
            read_archive(archive)
        assert name in str(error.value)
    (archive / name).write_bytes(content)
    assert read_archive(archive).values is not None


def test_statistics_are_used_though_the_values_are_damaged(archive: Path) -> None:
    content = bytearray((archive / "values.parquet").read_bytes())
    content[60] ^= 1
    (archive / "values.parquet").write_bytes(content)
    assert read_archive(archive, values=False).statistics["visits"].sum.sum() > 0


def test_standard_tools_check_archives(archive: Path) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=archive, check=True, capture_output=True)


def test_without_checksums_nothing_is_checked(archive: Path) -> None:
    (archive / "SHA256SUMS").unlink()
    text = (archive / "run.json").read_text()
    (archive / "run.json").write_text(text.replace('"partial": false', '"partial": true'))
    assert read_metadata(archive).partial


@pytest.mark.parametrize("content", [b"", b"\xff\xfe nothing", b"0" * 64 + b"  run.json\n", b"x" * 100_000])
def test_damaged_checksums(archive: Path, content: bytes) -> None:
    (archive / "SHA256SUMS").write_bytes(content)
    with pytest.raises(FormatError, match="SHA256SUMS"):
        read_archive(archive)


def test_checksums_that_were_cut_anywhere(archive: Path) -> None:
    """A truncation is detected at every byte, also between two lines."""
    content = (archive / "SHA256SUMS").read_bytes()
    for length in range(len(content)):
        (archive / "SHA256SUMS").write_bytes(content[:length])
        with pytest.raises(FormatError, match=r"SHA256SUMS(:\d+)?: is (no checksum|cut off)") as error:
            read_metadata(archive)
        assert "remove it to read the archive without checksums" in str(error.value)


def test_tables_that_an_archive_had_are_missed(archive: Path) -> None:
    """Not all archives have them, so that one that was copied in part would seem to be without."""
    whole = read_archive(archive)
    assert read_source(archive, whole.metadata, whole.tree) is None and read_communication(archive) is not None
    with (archive / "SHA256SUMS").open("a") as sums:
        sums.write(f"{'0' * 64}  source.parquet\n")
    with pytest.raises(FormatError, match=r"source\.parquet: is missing, but has a checksum in SHA256SUMS"):
        read_source(archive, whole.metadata, whole.tree)
    (archive / "communication.parquet").unlink()
    with pytest.raises(FormatError, match=r"communication\.parquet: is missing"):
        read_communication(archive)


@pytest.mark.parametrize("name", ["delays.parquet", "iterations.parquet"])
def test_a_list_without_an_optional_table_of_the_archive_is_cut(archive: Path, name: str) -> None:
    (archive / name).touch()
    with pytest.raises(FormatError, match=f"it lacks {name}"):
        read_archive(archive)


@pytest.mark.parametrize("checked", [True, False])
def test_a_table_of_messages_that_was_cut_anywhere(archive: Path, checked: bool) -> None:
    if not checked:
        (archive / "SHA256SUMS").unlink()
    content = (archive / "communication.parquet").read_bytes()
    for length in range(0, len(content), 7):
        (archive / "communication.parquet").write_bytes(content[:length])
        with pytest.raises(FormatError, match=r"communication\.parquet: (does not fit|cannot be read)"):
            read_communication(archive)


def test_an_archive_without_its_first_file_is_no_other_folder(archive: Path) -> None:
    """Otherwise an experiment would be modeled without one of its runs."""
    (archive / "run.json").unlink()
    runs, errors = scan_runs(archive.parent)
    assert runs == [] and "p=2.r1/run.json: is missing, but has a checksum in SHA256SUMS" in str(errors[0])
    with pytest.raises(FormatError, match=r"run\.json: is missing"):
        read_archive(archive)
    (archive / "SHA256SUMS").unlink()
    assert scan_runs(archive.parent) == ([], [])
