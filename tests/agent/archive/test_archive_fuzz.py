# SPDX-License-Identifier: Apache-2.0
"""Archives from strangers: whatever the bytes, reading gives an archive or a FormatError."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import FormatError

FILES = ("run.json", "regions.parquet", "callpaths.parquet", "values.parquet", "statistics.parquet", "ranks.parquet")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = tmp_path_factory.mktemp("archive")
    raw = folder / "raw"
    raw.mkdir()
    for rank in (0, 1):
        rank_profile(rank).write(raw)
    path = merge_run(raw, folder, RunMetadata({"p": 2}, exit_code=0)).path
    (path / "SHA256SUMS").unlink()  # what is changed should arrive
    return path, {name: (path / name).read_bytes() for name in FILES}


@settings(max_examples=300)
@given(data=st.data())
def test_mutated_archives(archive: tuple[Path, dict[str, bytes]], data: st.DataObject) -> None:
    path, whole = archive
    name = data.draw(st.sampled_from(FILES))
    content = bytearray(whole[name])
    footer = max(0, len(content) - 2000)  # the metadata of a Parquet file, where damage matters most
    places = st.one_of(st.integers(0, len(content) - 1), st.integers(footer, len(content) - 1))
    for position, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=6)):
        content[position] = value
    end = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    try:
        (path / name).write_bytes(content[:end])
        found = read_archive(path)
    except FormatError:
        return
    finally:
        (path / name).write_bytes(whole[name])
    assert found.values is not None
    assert found.values.callpath.max(initial=0) < len(found.tree)
    assert found.tree.region.max(initial=0) < len(found.tree.regions)
    assert all(statistics.sum.shape == (len(found.tree),) for statistics in found.statistics.values())
    assert np.all(found.tree.parent < np.arange(len(found.tree)))
