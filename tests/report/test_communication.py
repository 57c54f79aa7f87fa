# SPDX-License-Identifier: Apache-2.0
"""The communication matrix as the views show it: blocks of ranks, pairs, what is known of where ranks are."""

from __future__ import annotations

import numpy as np
import pytest
from quipu.agent.archive.run import CommunicationMatrix, RankRecord
from quipu.report.communication_views import communication_data, communication_json, communication_view
from quipu.report.terminal.communication import communication_facts, communication_map, pair_table
from quipu.report.terminal.glyphs import ASCII, Layout
from rich.console import Console


def ring(ranks: int, size: int = 100) -> CommunicationMatrix:
    rank = np.arange(ranks)
    to = (rank + 1) % ranks
    return CommunicationMatrix(rank, to, np.full(ranks, size), np.full(ranks, 4))


def printed(*parts: object) -> str:
    console = Console(width=80, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(*parts, sep="\n")
    return capture.get()


@pytest.mark.parametrize(("ranks", "blocks", "per_block"), [(1, 1, 1), (64, 64, 1), (65, 33, 2), (1000, 63, 16)])
def test_many_ranks_are_shown_in_blocks_that_lose_nothing(ranks: int, blocks: int, per_block: int) -> None:
    view = communication_view(ring(ranks), ranks)
    assert view.bytes.shape == (blocks, blocks)
    assert view.ranks_per_block == per_block
    assert view.bytes.sum() == view.total_bytes == 100 * ranks
    assert view.messages.sum() == view.total_messages == 4 * ranks
    assert view.partners == (1, 1.0, 1)
    if ranks == 1000:
        assert view.bytes[0, 0] == 1500
        assert view.bytes[0, 1] == view.bytes[62, 0] == 100
        assert view.distances == ((1, 0.999), (-999, 0.001))


def test_ranks_that_are_not_known_are_counted_but_not_drawn() -> None:
    pairs = CommunicationMatrix(*(np.array(column) for column in ([-1, 0, 0], [1, -1, 1], [5, 7, 11], [1, 1, 2])))
    view = communication_view(pairs, 2)
    assert view.unknown == 12
    assert view.total_bytes == 23
    assert view.bytes.tolist() == [[0, 11], [0, 0]]
    assert [row["sender"] for row in communication_json("run", view, pairs)["pairs"]] == [-1, 0, 0]


def test_what_stays_on_a_node() -> None:
    hosts = tuple(RankRecord(rank, host="ab"[rank // 2]) for rank in range(4))
    assert communication_view(ring(4), 4, hosts).within_nodes == 0.5
    alone = tuple(RankRecord(rank, host="a") for rank in range(4))
    assert communication_view(ring(4), 4, alone).within_nodes is None


@pytest.mark.parametrize("size", [0, 100])
def test_the_map_of_the_terminal(size: int) -> None:
    view = communication_view(ring(8, size), 8)
    layout = Layout(80, ASCII)
    text = printed(communication_map(view, layout), pair_table(view, layout))
    lines = text.splitlines()
    assert lines[1].rstrip() == "0   @@"
    assert lines[8].rstrip() == "7 @@"
    assert f"{'bytes' if size else 'messages'}, up to: ." in lines[9]
    facts = dict(communication_facts(view))
    assert facts["partners"] == "a rank sends to 1 .. 1 ranks, 1 in the mean"
    assert facts["distance"] == "receiver minus sender: +1 87.5%, -7 12.5%"


def test_a_page_gets_coarser_matrices_if_there_are_many() -> None:
    everybody = np.arange(128)
    sender, receiver = (grid.ravel() for grid in np.meshgrid(everybody, everybody, indexing="ij"))
    dense = CommunicationMatrix(sender, receiver, np.ones(sender.size, np.int64), np.ones(sender.size, np.int64))
    points = np.array([[float(p)] for p in range(20)])
    few = communication_data({(3.0,): (dense, 128)}, points)
    many = communication_data({(float(p),): (dense, 128) for p in range(19)}, points)
    assert [(one["configuration"], one["step"], len(one["cells"])) for one in few] == [(3, 2, 4096)]
    assert {(one["step"], len(one["cells"])) for one in many} == {(4, 1024)}
    assert all(sum(cell[2] for cell in one["cells"]) == 128 * 128 for one in many)
    assert communication_data({(99.0,): (dense, 128)}, points) == []
