# SPDX-License-Identifier: Apache-2.0
"""Which process grids agree with who sent to whom."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import CommunicationMatrix
from quipu.agent.merge.experiment import load_experiment
from quipu.agent.merge.process_grids import process_grids
from quipu.agent.merge.run import merge_run
from quipu.agent.merge.topology import agreeing
from quipu.modeling.process_grid import assumed

Sizes = dict[tuple[int, int], tuple[int, int]]  # bytes and messages by pair


def matrix(sizes: Sizes) -> CommunicationMatrix:
    ordered = sorted(sizes)
    columns = [(*pair, *sizes[pair]) for pair in ordered]
    sender, receiver, size, messages = np.array(columns, dtype=np.int64).T
    return CommunicationMatrix(sender, receiver, size, messages)


def grid(extents: tuple[int, ...], corners: bool = False, order: str = "C", periodic: bool = False) -> Sizes:
    """Exchange with the neighbours in a grid: much over faces, little over corners."""
    ranks = int(np.prod(extents))
    places = np.array(np.unravel_index(np.arange(ranks), extents, order=order)).T  # type: ignore[call-overload]
    found: Sizes = {}
    for a, b in product(range(ranks), repeat=2):
        apart = np.abs(places[a] - places[b])
        if periodic:
            apart = np.minimum(apart, np.array(extents) - apart)
        if a != b and (apart.sum() == 1 or (corners and apart.max() == 1)):
            found[a, b] = (1000 if apart.sum() == 1 else 10, 5)
    return found


def everyone(ranks: int) -> Sizes:
    return {(a, b): (100, 3) for a, b in product(range(ranks), repeat=2) if a != b}


def dimensions(matrices: dict[int, Sizes]) -> list[int] | None:
    found = agreeing(assumed("p"), {ranks: matrix(own) for ranks, own in matrices.items()})
    return None if found is None else sorted({grid.dimensions for grid in found})


def test_a_chain_and_a_ring_are_chains() -> None:
    chain: Sizes = {(a, a + 1): (8, 9) for a in range(3)}
    assert dimensions({4: chain}) == [1]
    assert dimensions({4: {**chain, (3, 0): (8, 9)}}) == [1]
    assert dimensions({8: grid((8,), periodic=True)}) == [1]


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_four_ranks_in_a_grid_are_no_chain(order: str, corners: bool) -> None:
    assert dimensions({4: grid((2, 2), corners, order)}) == [2, 3]


def test_eight_ranks_tell_planes_from_blocks() -> None:
    assert dimensions({8: grid((4, 2))}) == [2]
    assert dimensions({8: grid((2, 4))}) == [2]
    assert dimensions({8: grid((4, 2), periodic=True)}) == [2]
    assert dimensions({8: grid((2, 2, 2), corners=True)}) == [3]
    assert dimensions({4: grid((2, 2)), 8: grid((2, 2, 2))}) == [3]


def test_everyone_with_everyone_is_no_grid() -> None:
    assert dimensions({4: everyone(4)}) == [1]
    assert dimensions({4: everyone(4), 8: everyone(8)}) == [1]


def test_few_ranks_and_other_patterns_say_nothing() -> None:
    assert dimensions({}) is None
    assert dimensions({2: grid((2,)), 3: grid((3,))}) is None
    assert dimensions({8: {(0, rank): (100, 5) for rank in range(1, 8)}}) is None
    assert dimensions({4: {(0, 1): (8, 1), (2, 3): (8, 1)}}) is None


def test_messages_to_oneself_to_unknown_ranks_and_few_ones_do_not_count() -> None:
    chain: Sizes = {(a, a + 1): (800, 100) for a in range(7)}
    assert dimensions({8: {**chain, (-1, 3): (9, 900), (2, 2): (9, 900), (0, 5): (99999, 2)}}) == [1]


def test_an_experiment_has_the_grids_of_its_messages(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for ranks in (2, 4):
        raw = tmp_path / f"raw{ranks}"
        raw.mkdir()
        for rank in range(ranks):
            profile = rank_profile(rank, ranks)
            others = {key: text for key, text in profile.attributes.items() if not key.startswith("partners:")}
            sent = {"partners:0": f"{rank + 1}:80:4:0:0"} if rank + 1 < ranks else {}
            replace(profile, attributes=others | sent).write(raw)
        merge_run(raw, runs, RunMetadata({"p": ranks}, exit_code=0))
    (found,) = load_experiment(runs).grids
    assert (found.dimensions, found.source) == (1, "of messages")


@pytest.mark.parametrize(
    ("periods", "expected"), [([(True, False)] * 3, (True, False)), ([(True, False), (False, False), ()], ())]
)
def test_a_grid_is_periodic_where_all_runs_say_so(periods: list[tuple[bool, ...]], expected: tuple[bool, ...]) -> None:
    extents = {2: (2, 1), 4: (2, 2), 8: (4, 2)}
    runs = [
        RunMetadata(ranks=ranks, grid=own, periodic=around)
        for (ranks, own), around in zip(extents.items(), periods, strict=True)
    ]
    ((found,), notes) = process_grids(("p",), np.array([[2.0], [4.0], [8.0]]), runs, range(3))
    assert (found.rule, found.periodic, notes) == ("balanced", expected, [])


@pytest.mark.parametrize(("declared", "expected"), [((), (True, False)), ((2, 1), (True, False)), ((1, 2), ())])
def test_periods_are_those_of_the_dimensions_of_the_program(
    tmp_path: Path, declared: tuple[int, ...], expected: tuple[bool, ...]
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for rank in range(2):
        profile = rank_profile(rank, 2)
        grid = {"process_grid": "2x1", "process_grid_periodic": "1x0"} if rank == 0 else {}
        replace(profile, attributes={**profile.attributes, **grid}).write(raw)
    merge_run(raw, tmp_path / "runs", RunMetadata({"p": 2}, exit_code=0, grid=declared))
    (file,) = (tmp_path / "runs").glob("*/run.json")
    run = json.loads(file.read_text(encoding="utf-8"))
    assert (tuple(run["grid"]), tuple(run["periodic"])) == (declared or (2, 1), expected)
