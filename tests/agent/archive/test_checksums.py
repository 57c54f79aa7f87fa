"""Archives that were changed after they were written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive, read_metadata
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
