# SPDX-License-Identifier: Apache-2.0
"""The library shared by the merge and the reduction over MPI: invalid input, and another version."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quipu.agent.merge import native
from quipu.agent.merge.native import CELL, add_rows, merge_cells, unify_nodes, unpacked_cells
from quipu.modeling.errors import EnvironmentProblem

Forest = list[tuple[int, int]]


@given(st.lists(st.tuples(st.integers(-1, 40), st.integers(0, 3)), max_size=40))
def test_call_paths_come_level_by_level_or_not_at_all(forest: Forest) -> None:
    parent, region = (np.array([node[i] for node in forest], dtype=np.int64) for i in range(2))
    if any(above >= node for node, above in enumerate(parent.tolist())):
        with pytest.raises(ValueError, match="before its parent"):
            unify_nodes(parent, region)
        return
    keys: list[tuple[int, ...]] = []
    for above, name in forest:
        keys.append((*(keys[above] if above >= 0 else ()), name))
    path, tree_parent, tree_region = unify_nodes(parent, region)
    expected = sorted(dict.fromkeys(keys), key=len)
    found: list[tuple[int, ...]] = []
    for above, name in zip(tree_parent.tolist(), tree_region.tolist(), strict=True):
        found.append((*(found[above] if above >= 0 else ()), name))
    assert found == expected
    assert [found[place] for place in path.tolist()] == keys


@given(st.binary(max_size=400), st.integers(0, 8))
def test_a_senseless_message_is_an_error_or_cells(message: bytes, count: int) -> None:
    try:
        cells = unpacked_cells(message, count)
    except ValueError:
        return
    assert cells.shape == (count,)
    assert (cells["used"] <= 32).all()


def test_rows_that_do_not_fit_are_an_error() -> None:
    cells = np.zeros((2, 1), dtype=CELL)
    ranks, ones = np.arange(2), np.ones(2)
    for path, rank in (([1, 0], [0, 0]), ([0, 0], [1, 0]), ([0, 7], [0, 0]), ([0, 1], [0, 5]), ([-1, 0], [0, 0])):
        with pytest.raises(ValueError, match="not sorted"):
            add_rows(cells, 0, ranks, np.array(path), np.array(rank), ones, False)
    with pytest.raises(ValueError, match="no metric 1"):
        add_rows(cells, 1, ranks, np.zeros(2, dtype=np.int64), ranks, ones, False)
    with pytest.raises(ValueError, match=r"cannot be added|different sizes"):
        add_rows(cells, 0, ranks, ranks, ranks, np.ones(3), False)
    with pytest.raises(ValueError, match=r"cannot be added|different sizes"):
        merge_cells(cells, np.zeros((1, 2), dtype=CELL))


@pytest.mark.parametrize("kind", ["missing", "damaged", "strange", "other"])
def test_a_library_that_cannot_be_used_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(native, "LIBRARY", f"libquipu_merge_{kind}.so")
    library = tmp_path / "lib" / "quipu" / native.LIBRARY
    library.parent.mkdir(parents=True)
    if kind == "damaged":
        library.write_bytes(b"\x7fELF")
    elif kind in ("strange", "other"):
        source = tmp_path / "other.c"
        source.write_text("const unsigned quipu_cell_size = 8;" if kind == "other" else "int nothing;")
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    monkeypatch.setenv("QUIPU_HOME", str(tmp_path))
    native._functions.cache_clear()
    try:
        with pytest.raises(EnvironmentProblem, match=r"libquipu_merge_.*\.so .*install Quipu again"):
            unify_nodes(np.array([-1]), np.array([0]))
    finally:
        native._functions.cache_clear()
