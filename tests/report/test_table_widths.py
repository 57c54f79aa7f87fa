# SPDX-License-Identifier: Apache-2.0
"""Tables in narrow terminals: names and remarks stay readable, and columns keep their places."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from quipu.modeling.experiment import Region
from quipu.modeling.pmnf.model import Prediction
from quipu.modeling.refine.selection import Choice, RegionSelection
from quipu.report.kernel_views import KernelRow
from quipu.report.terminal import Layout, head, plain_text, shorten, shorten_apart
from quipu.report.terminal.columns import elastic, first_terms
from quipu.report.terminal.headings import CALL_PATH, KERNEL, LIMITED_BY, NOTE
from quipu.report.terminal.kernels import advice_lines
from quipu.report.terminal.tables import filter_table, model_table, ranking_table
from quipu.report.views import ModelRow, RankedRow
from rich.cells import cell_len
from rich.console import Group, RenderableType

HALO = ("main", "solve", "run", "halo_exchange")
MODELS = [
    ModelRow(
        (*HALO, "MPI_Waitall"), "time", "1.137e-09·n² + 0.00017", 134.2, "table I: MPI_Waitall", ("oversubscribed",)
    ),
    ModelRow((*HALO, "face_pack"), "time", "8.907e-08·n²", 41.1, "effort"),
    ModelRow((*HALO, "face_pack"), "blocks", "120·n² + 360·n + 240", 0.0, "measured"),
]
FAR = {"p": 2048.0, "n": 4.0}
RANKED = [
    RankedRow(("main", "solve", "grid_set_sine_mode"), 0.326, 0.625, "3.466e-09·n³ + 1.04e-08", 0.0213, 5.0, FAR),
    RankedRow((*HALO, "MPI_Isend"), 0.0306, 0.059, "0.002546·log2(p)", 0.00378, 0.247, FAR, oversubscribed=True),
]


def shown(renderable: RenderableType, width: int) -> list[str]:
    text = [line for line in plain_text(renderable, 500).splitlines() if line]
    assert max(map(cell_len, text)) <= width
    return text


def test_models_below_their_call_paths_where_these_have_no_room_beside() -> None:
    assert shown(model_table(MODELS, Layout(80)), 80) == [
        "call path",
        "  metric  model                    SMAPE  basis                 note",
        "main->solve->run->halo_exchange->MPI_Waitall",
        "  time    1.137e-09·n² + 0.00017  134.2%  table I: MPI_Waitall  oversubscribed",
        "main->solve->run->halo_exchange->face_pack",
        "  time    8.907e-08·n²             41.1%  effort",
        "  blocks  120·n² + 360·n + 240      0.0%  measured",
    ]
    wide = shown(model_table(MODELS, Layout(120)), 120)
    assert wide[0].split() == ["call", "path", "metric", "model", "SMAPE", "basis", "note"]
    assert len(wide) == 1 + len(MODELS)


def test_a_ranking_keeps_models_and_gives_up_distances_and_shares() -> None:
    """The head of the view has the distance of the point."""
    wide = shown(ranking_table(RANKED, "s", Layout(120)), 120)
    assert wide[0].endswith("model") and "beyond" in wide[0]
    assert "…->grid_set_sine_mode" in wide[1] or "main->…->grid_set_sine_mode" in wide[1]
    assert not wide[-1].startswith("hidden columns")
    middle = shown(ranking_table(RANKED, "s", Layout(100)), 100)
    assert middle[0].endswith("model") and middle[1].endswith("3.466e-09·n³ + …")
    assert middle[-1] == "hidden columns: beyond (a wider terminal or --json shows them)"
    assert "grid_set_sine_mode" in middle[1]
    narrow = shown(ranking_table(RANKED, "s", Layout(80)), 80)
    assert narrow[2].strip() == "1  main->solve->grid_set_sine_mode"
    assert narrow[3].split("  ")[-1] == "3.466e-09·n³ + 1.04e-08"
    narrowest = shown(ranking_table(RANKED, "s", Layout(60)), 60)
    assert "hidden columns: beyond, share, model" in " ".join(narrowest)


def test_a_mark_of_all_rows_stands_in_the_head_of_the_view_only() -> None:
    assert "oversubscribed" in "".join(shown(ranking_table(RANKED, "s", Layout(120)), 120))
    assert "oversubscribed" not in "".join(shown(ranking_table(RANKED, "s", Layout(120), mark=False), 120))


def test_reasons_and_advice_have_short_names() -> None:
    long = (
        "void fe::assemble<fe::Matrix<double, int, int>, fe::Vector<double, int, int>>(fe::Matrix<double, int, int>&)"
    )
    way = Choice(Region("run", "run"), "", 0.5, 1.0, 0.0, leads_to=long)
    selection = RegionSelection({}, (way,), (), 0.0, 1.0, 0.0, 1.0)
    assert way.reason == f"on the way to {long}"
    assert "on the way to fe::assemble<…>(…)" in " ".join(shown(filter_table(selection, 1, Layout(120)), 120))
    sure = Prediction(1.0, 1.0, 1.0, False)
    row = KernelRow(long, "constant", sure, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0, "1", "memory", "use less of it", 0.0)
    assert shown(advice_lines([row], 1, Layout(120)), 120) == ["fe::assemble<…>(…) (100.0%): memory: use less of it"]


@pytest.mark.parametrize("width", [80, 120])
def test_optional_columns_are_left_out_before_numbers_are_cut(width: int) -> None:
    headings = (KERNEL, "kind", "predicted", "interval", "compute", "memory", "MPI", "CPI", LIMITED_BY)
    row = (
        "sweep",
        "does not decrease",
        "60.6 ms",
        "1.95 ms .. 150 ms",
        "60.6 ms",
        "60.6 ms",
        "60.6 ms",
        "0.2",
        "memory",
    )
    table = elastic(headings, [row], (0, 8), (2,), Layout(width), (7, 1))
    text = " ".join(shown(table, width))
    assert ("CPI" in text.split("hidden columns")[0]) == (width == 120)
    assert ("hidden columns: CPI" in text) == (width == 80)
    assert text.count("60.6 ms") == 4
    assert "…" not in text


def test_a_number_and_its_unit_stay_in_one_line() -> None:
    note = "counters 12.4 µs, node agents beside it take 60.0 ms of processor time, 12 % of the run and 34 kB of memory"
    for width in range(60, 100):
        table = elastic((CALL_PATH, "metric", NOTE), [("main", "time", note)], (0, 2), (), Layout(width))
        text = shown(Group(head("run", [("measuring", note)], [note], Layout(width)), table), width)
        assert not [line for line in text if re.match(r"(note:)?\s*(µs|ms|%|kB)\b", line)]
        assert not [line for line in text if line.endswith(("12.4", "60.0", " 12", "34"))]


def test_a_parameter_and_its_values_stay_in_one_line() -> None:
    note = "oversubscribed: 4 configurations: p = 4, 8; n = 1000, 2000; models leave them out"
    for width in range(40, 80):
        text = shown(head("runs", [], [note], Layout(width)), width)
        assert not [line for line in text if line.startswith("=") or line.endswith((" p", " n", "="))]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_remarks_are_wrapped_and_not_cut(width: int) -> None:
    remark = "executed at p=1 only; without p=16, n=32, where 47.5 was counted and this is 23.75"
    rows = [("main->solve", "time", remark)]
    text = " ".join(shown(elastic((CALL_PATH, "metric", NOTE), rows, (0, 2), (), Layout(width)), width))
    assert all(word in text.split() for word in remark.split())


@pytest.mark.parametrize(
    ("width", "short"),
    [(40, "3·n³ + 12.5·n·log2(p) - 7"), (23, "3·n³ + …"), (12, "3·n³ + …"), (6, "…·n³")],
)
def test_a_formula_keeps_what_grows_fastest(width: int, short: str) -> None:
    assert first_terms("3·n³ + 12.5·n·log2(p) - 7", width + 1) == short


@pytest.mark.parametrize(
    ("width", "short"),
    [(27, "4.947e-08·n·log2(n)/p + …"), (19, "…·n·log2(n)/p + …"), (14, "…·n·log2(n)/p"), (9, "…·n·log2…")],
)
def test_a_formula_that_is_cut_is_no_other_formula(width: int, short: str) -> None:
    assert first_terms("4.947e-08·n·log2(n)/p - 4.947e-08·n·log2(p)/p", width) == short


def test_long_notes_stand_below_and_leave_formulas_their_room() -> None:
    note = "oversubscribed; without p=1, where nobody else takes part"
    row = ModelRow(
        ("main", "MPI_Allgather"), "time", "0.0002334·n·(p-1)/p + 5e-09", 30.6, "table I: MPI_Allgather", (note,)
    )
    assert shown(model_table([row], Layout(80)), 80) == [
        "call path",
        "  metric  model                        SMAPE  basis",
        "main->MPI_Allgather",
        "  time    0.0002334·n·(p-1)/p + 5e-09  30.6%  table I: MPI_Allgather",
        f"    note: {note}",
    ]


def test_a_note_of_many_lines_stands_below_its_row() -> None:
    """A long note is not cut, short notes stay beside their rows, and the columns do not move."""
    note = "values differ by 8 % between configurations that do not support more than a constant, which measuring of "
    note += "further sizes, and of more than one number of ranks each, would show to be what it is, or something else"
    last = ModelRow(MODELS[2].path, "blocks", "120·n² + 360·n + 240", 0.0, "measured", (note,))
    lines = shown(model_table([replace(MODELS[1], notes=(note,)), MODELS[0], last], Layout(120)), 120)
    assert [at for at, line in enumerate(lines) if line.startswith("    note: ")] == [2, 6]
    assert " ".join(" ".join(lines[2:4]).split()) == " ".join(" ".join(lines[6:8]).split()) == f"note: {note}"
    assert lines[4].endswith("oversubscribed")
    assert {line.index("time") for line in (lines[1], lines[4])} == {lines[0].index("metric")}


@pytest.mark.parametrize(
    ("width", "short"),
    [(24, "…->grid_set_sine_mode"), (19, "…grid_set_sine_mode"), (17, "…grid_se…ine_mode")],
)
def test_a_call_path_keeps_its_last_step_whole_as_long_as_it_can(width: int, short: str) -> None:
    assert shorten("main->solve->grid_set_sine_mode", width) == short


@pytest.mark.parametrize("width", [24, 28, 32, 40, 50])
def test_callers_that_begin_and_end_alike_are_told_apart_by_what_is_between(width: int) -> None:
    callers = ("exchangeLeftRightGhostLayers()", "exchangeBottomTopGhostLayers()")
    paths = [f"main->Mpi::simulateTimestep()->SWE_Block::{caller}->MPI_Sendrecv" for caller in callers]
    short = shorten_apart(paths, width)
    assert len(set(short)) == 2 and all(cell_len(own) <= width for own in short)
    assert all(word in own for word, own in zip(("Lef", "Bot"), short, strict=True))
