# SPDX-License-Identifier: Apache-2.0
"""Parameters and iterations that programs name: from the profiles of the ranks to the archive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from profile_writer import rank_profile
from quipu.agent.archive.iteration_table import FILE, read_iterations
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import IterationTable, RunArchive
from quipu.agent.archive.tables import write_table
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import FormatError
from quipu.modeling.metrics import METRICS

SECONDS_PER_TICK = 1e-9


def span(first: int, last: int, ticks: int, counted: int | None = None, **values: int) -> str:
    """Return a span as the runtime describes it."""
    count = last - first + 1
    sums = [values.get(name, 0) for name in METRICS]
    return " ".join(map(str, [first, last, count, ticks, count if counted is None else counted, *sums]))


def merged(folder: Path, *ranks: dict[str, str], parameters: dict[str, float] | None = None) -> RunArchive:
    raw = folder / "raw"
    raw.mkdir()
    for rank, texts in enumerate(ranks):
        profile = rank_profile(rank, len(ranks))
        replace(profile, attributes={**profile.attributes, **texts}).write(raw)
    return merge_run(raw, folder / "runs", RunMetadata(parameters or {}, command=("./app",), exit_code=0))


def rows(table: IterationTable | None, metric: str) -> list[tuple[int, int, int, int, float, float]]:
    """Return first, last, iterations, ranks, mean and max of a metric."""
    assert table is not None
    columns = (table.first, table.last, table.iterations, table.ranks, table.mean, table.max)
    chosen = [place for place, name in enumerate(table.metric) if name == metric]
    return [tuple(column[place].item() for column in columns) for place in chosen]


def test_parameters_of_all_ranks_name_the_run(tmp_path: Path) -> None:
    texts = {"parameter:n": "100", "parameter:cfl": "0.5"}
    archive = merged(tmp_path, texts, texts)
    assert dict(archive.metadata.parameters) == {"n": 100, "cfl": 0.5}
    assert archive.path.name == "cfl=0.5,n=100.r1"
    assert archive.metadata.problems == ()


def test_those_of_the_user_hold(tmp_path: Path) -> None:
    archive = merged(tmp_path, {"parameter:n": "100", "parameter:m": "7"}, parameters={"n": 99, "p": 1})
    assert dict(archive.metadata.parameters) == {"n": 99, "p": 1, "m": 7}
    assert archive.metadata.problems == ("parameter n: the program sets 100, but the run has 99",)
    assert archive.metadata.complete


def test_parameters_that_ranks_disagree_about_are_left_out(tmp_path: Path) -> None:
    archive = merged(tmp_path, {"parameter:n": "100"}, {"parameter:n": "101"})
    assert dict(archive.metadata.parameters) == {}
    assert archive.metadata.problems == ("parameter n: the ranks disagree about it (100 to 101), and it was left out",)


@pytest.mark.parametrize("text", ["", "many", "nan", "inf", "1e999", "1\t2"])
def test_parameters_that_are_no_numbers_are_left_out(tmp_path: Path, text: str) -> None:
    assert dict(merged(tmp_path, {"parameter:n": text, "parameter:a b": "1"}).metadata.parameters) == {}


def test_iterations_are_the_mean_over_ranks(tmp_path: Path) -> None:
    text = "1;" + ";".join(span(i, i, 1000 * (i + 1), blocks=10 * i) for i in range(3))
    slower = "1;" + ";".join(span(i, i, 3000 * (i + 1), blocks=20 * i) for i in range(3))
    archive = merged(tmp_path, {"iterations:0:step": text}, {"iterations:0:step": slower})
    table = read_iterations(archive.path)
    time = rows(table, "time")
    assert [row[:4] for row in time] == [(i, i, 1, 2) for i in range(3)]
    assert np.allclose(
        [row[4:] for row in time],
        [(2000 * (i + 1) * SECONDS_PER_TICK, 3000 * (i + 1) * SECONDS_PER_TICK) for i in range(3)],
    )
    assert rows(table, "blocks") == [(1, 1, 1, 2, 15.0, 20.0), (2, 2, 1, 2, 30.0, 40.0)]


def test_ranks_with_wider_spans_decide(tmp_path: Path) -> None:
    fine = "1;" + ";".join(span(i, i, 1000, blocks=1) for i in range(5))
    coarse = "2;" + ";".join((span(0, 1, 4000, blocks=6), span(2, 3, 4000, blocks=6)))
    archive = merged(tmp_path, {"iterations:0:step": fine}, {"iterations:0:step": coarse})
    table = read_iterations(archive.path)
    assert [row[:4] for row in rows(table, "time")] == [(0, 1, 2, 2), (2, 3, 2, 2), (4, 4, 1, 1)]
    assert [row[4:] for row in rows(table, "blocks")] == [(2.0, 3.0), (2.0, 3.0), (1.0, 1.0)]


def test_threads_of_a_rank_add_their_effort(tmp_path: Path) -> None:
    archive = merged(
        tmp_path,
        {
            "iterations:0:step": "1;" + span(0, 0, 1000, blocks=5),
            "iterations:1:step": "1;" + span(0, 0, 3000, blocks=7),
        },
    )
    table = read_iterations(archive.path)
    assert rows(table, "blocks")[0][4] == 12
    assert rows(table, "time")[0][4] == pytest.approx(3000 * SECONDS_PER_TICK)


def test_effort_is_of_the_iterations_that_it_is_known_of(tmp_path: Path) -> None:
    archive = merged(tmp_path, {"iterations:0:step": "4;" + span(0, 3, 4000, counted=2, blocks=10)})
    assert rows(read_iterations(archive.path), "blocks")[0][4] == 5


@pytest.mark.parametrize("text", ["", "1", "0;" + span(0, 0, 1), "1;1 2 3", "1;" + span(0, 0, 1) + " 7", "x;y"])
def test_what_makes_no_sense_is_left_out(tmp_path: Path, text: str) -> None:
    assert read_iterations(merged(tmp_path, {"iterations:0:step": text}).path) is None


def test_a_foreign_table_is_an_error(tmp_path: Path) -> None:
    archive = merged(tmp_path, {"iterations:0:step": "1;" + span(0, 0, 1)})
    write_table(archive.path / FILE, {"phase": ("str", ["step"])})
    with pytest.raises(FormatError):
        read_iterations(archive.path)
