# SPDX-License-Identifier: Apache-2.0
"""`quipu tensor`: fit, predict, tune and explain on tables, and bad input as one message."""

from __future__ import annotations

import csv
import errno
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .conftest import Quipu


@pytest.fixture
def table(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    path = tmp_path / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n", "ppn", "lay out", "time_s"])
        for row in range(120):
            n, ppn = int(random.integers(10, 2000)), int(2 ** random.integers(0, 5))
            layout = str(random.choice(["dgz", "zdg"]))
            time = 1e-6 * n / ppn * (2.0 if layout == "zdg" else 1.0)
            writer.writerow([n if row else "n/a", ppn, layout, time])
    return path


def fit(quipu: Quipu, table: Path) -> None:
    answer = quipu("tensor", "fit", table, "--target", "time_s", "--budget", "0.02", "-o", "m.json")
    assert answer.code == 0, answer.err
    assert "1 row is left out: no number in some parameter (such as n in line 2)" in answer.out


def test_from_a_table_to_the_best_configuration(quipu_here: Quipu, table: Path, tmp_path: Path) -> None:
    fit(quipu_here, table)
    assert (tmp_path / "m.npz").exists()
    assert quipu_here("tensor", "predict", "m.json", table, "-o", "p.csv").code == 0
    with (tmp_path / "p.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert rows[0]["predicted"] == ""
    assert float(rows[5]["low"]) <= float(rows[5]["predicted"]) <= float(rows[5]["high"])
    best = json.loads(quipu_here("tensor", "tune", "m.json", "--at", "n=500", "--constraint", "ppn <= 4", "--json").out)
    assert best["configurations"][0]["values"] == {"n": 500.0, "ppn": 4.0, "lay out": "dgz"}
    effects = json.loads(quipu_here("tensor", "explain", "m.json", "--json").out)["effects"]
    assert {one["parameter"] for one in effects} == {"n", "ppn", "lay out"}
    for _ in range(2):
        assert quipu_here("tensor", "explain", "m.json", "-o", "e.html").code == 0
    assert quipu_here("tensor", "explain", "m.json", "--plot", "e.png").code == 0
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 6
    assert page.count('class="beyond"') == 2
    assert "ppn: extrapolated beyond 16 (" in page
    assert "How the model was chosen" in page
    assert 'class="kept"><title>start: ' in page
    assert "<b>lay out</b>" in page
    far = quipu_here("tensor", "predict", "m.json", "--at", "n=1e5", "--at", "ppn=4", "--at", "lay out=zdg", "--json")
    assert json.loads(far.out)["rows"][0]["extrapolated"] == ["n"]
    together = quipu_here("tensor", "predict", "m.json", "--at", "n=1e5,ppn=4, lay out=zdg", "--json")
    assert json.loads(together.out) == json.loads(far.out)
    some = quipu_here("tensor", "tune", "m.json", "--at", "n=500", "--values", "ppn=2,4,lay out=dgz", "--json")
    assert {one["values"]["ppn"] for one in json.loads(some.out)["configurations"]} == {2.0, 4.0}


def test_parquet_and_an_experiment(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    n = random.integers(10, 2000, 60)
    pq.write_table(pa.table({"n": n, "flag": n % 2 == 0, "time": n * 1e-6}), tmp_path / "d.parquet")
    assert quipu_here("tensor", "fit", "d.parquet", "--budget", "0.02").code == 0
    answer = quipu_here("tensor", "fit", heat, "--target", "blocks", "--budget", "0.02", "-o", "h.json", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["parameters"] == ["p", "n"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fit", "nowhere.csv"], 1, "nowhere.csv: is missing"),
        (["fit", "nowhere"], 1, "nowhere: the file or experiment does not exist"),
        (["fit", "empty.csv"], 1, "empty.csv: is empty"),
        (["fit", "{table}"], 1, "no column 'time'; there are: n, ppn, lay out, time_s"),
        (["fit", "{table}", "--target", "lay out"], 1, "must hold numbers, not texts"),
        (["fit", "{table}", "--target", "time_s", "--loss", "l1"], 2, "--loss 'l1'"),
        (["fit", "{table}", "--target", "time_s", "--budget", "0"], 2, "--budget 0"),
        (["fit", "{table}", "--target", "time_s", "--uniform", "n", "--geometric", "n"], 2, "both name n"),
        (["fit", "bad.parquet"], 1, "bad.parquet: cannot be read"),
        (["predict", "{table}", "{table}"], 1, "is not JSON"),
        (["predict", "other.json", "{table}"], 1, "other.json"),
        (["predict", "m.json"], 2, "give DATA"),
        (["predict", "m.json", "--at", "q=1"], 2, "--at 'q=1'"),
        (["predict", "m.json", "--at", "lay out=gdz"], 2, "'gdz' was not measured"),
        (["predict", "m.json", "--at", "n=1"], 2, "one value for ppn, lay out"),
        (["tune", "m.json", "--constraint", "q > 1"], 1, "no parameter q"),
        (["tune", "m.json", "--constraint", "ppn > 99"], 1, "no configuration fulfils"),
        (["explain", "m.json", "--plot", "x.doc"], 2, "the name must end with"),
        (["explain", "m.json", "-o", "{table}"], 2, "contains no page of effects"),
    ],
)
def test_one_message(
    arguments: list[str], code: int, words: str, *, quipu_here: Quipu, table: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1xxxxPAR1")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    (tmp_path / "other.npz").write_bytes(b"")
    if "m.json" in arguments:
        fit(quipu_here, table)
    answer = quipu_here("tensor", *(argument.replace("{table}", str(table)) for argument in arguments))
    assert answer.code == code, answer.err
    assert answer.err.startswith("quipu: error: ")
    assert words in answer.err


def test_other_files_are_not_replaced(quipu_here: Quipu, table: Path, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"mine": 1}', encoding="utf-8")
    answer = quipu_here("tensor", "fit", table, "--target", "time_s", "--budget", "0.02", "-o", "m.json")
    assert answer.code == 2
    assert "exists and contains no tensor model" in answer.err


def test_a_full_disk_leaves_the_model_that_was_there(
    quipu_here: Quipu, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model is two files; a new one with the arrays of an old one is an error."""
    fit(quipu_here, table)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    written: list[int] = []

    def sync(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", sync)
    answer = quipu_here("tensor", "fit", table, "--target", "time_s", "--budget", "0.02", "--seed", "5", "-o", "m.json")
    assert answer.code == 1
    assert "m.json: No space left on device (the disk is full" in answer.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture
def solvers(tmp_path: Path) -> Path:
    """A table whose solver is a number from 1 to 12 without an order."""
    random = np.random.default_rng(0)
    factors = np.random.default_rng(3).permutation(12) / 4
    lines = ["solver,n,time_s"]
    for _ in range(400):
        solver, n = int(random.integers(1, 13)), int(random.integers(1, 200))
        lines.append(f"{solver},{n},{1e-3 * n * np.exp(factors[solver - 1]):.8g}")
    path = tmp_path / "solvers.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_numbers_that_are_names(quipu_here: Quipu, solvers: Path, tmp_path: Path) -> None:
    options = ("--target", "time_s", "--budget", "0.1", "-o", "m.json")
    plain = quipu_here("tensor", "fit", solvers, *options)
    assert "if its numbers are names, use --categorical solver" in " ".join(plain.out.split())
    answer = quipu_here("tensor", "fit", solvers, *options, "--categorical", "solver", "--json")
    assert json.loads(answer.out)["categorical"] == ["solver"]
    assert json.loads(answer.out)["notes"] == []
    best = int(np.argmin(np.random.default_rng(3).permutation(12))) + 1
    found = json.loads(quipu_here("tensor", "tune", "m.json", "--at", "n=100", "--json").out)
    assert found["configurations"][0]["values"]["solver"] == best
    effects = json.loads(quipu_here("tensor", "explain", "m.json", "--json").out)["effects"]
    shown = next(one["values"] for one in effects if one["parameter"] == "solver")
    assert shown == [str(one) for one in range(1, 13)]
    assert quipu_here("tensor", "explain", "m.json", "-o", "e.html").code == 0
    assert (tmp_path / "e.html").read_text(encoding="utf-8").count("<rect") >= 12
    (tmp_path / "new.csv").write_text("solver,n\n3,50\n13,50\n", encoding="utf-8")
    assert quipu_here("tensor", "predict", "m.json", "new.csv", "-o", "p.csv").code == 0
    with (tmp_path / "p.csv").open(encoding="utf-8") as file:
        assert [row["extrapolated"] for row in csv.DictReader(file)] == ["", "solver"]


@pytest.mark.parametrize("option", [("--at", "solver=13"), ("--values", "solver=2,13")])
def test_a_number_that_is_no_measured_category(quipu_here: Quipu, solvers: Path, option: tuple[str, str]) -> None:
    arguments = ("--target", "time_s", "--budget", "0.02", "-o", "m.json", "--categorical", "solver")
    assert quipu_here("tensor", "fit", solvers, *arguments).code == 0
    answer = quipu_here("tensor", "tune", "m.json", *option)
    assert answer.code != 0
    assert "'13' was not measured; choose one of: 1, 2, 3" in answer.err


def test_a_category_has_no_spacing(quipu_here: Quipu, solvers: Path) -> None:
    answer = quipu_here(
        "tensor", "fit", solvers, "--target", "time_s", "--categorical", "solver", "--geometric", "solver"
    )
    assert answer.code != 0
    assert "column 'solver' is categorical" in answer.err


def test_error_by_rows_and_what_is_beyond(quipu_here: Quipu, table: Path, tmp_path: Path) -> None:
    fit(quipu_here, table)
    options = ("explain", "m.json", "--data", table, "-o", "e.html", "--plot", "e.png", "--json")
    answer = quipu_here("tensor", *options)
    assert answer.code == 0, answer.err
    found = json.loads(answer.out)
    rows = [one["rows"] for one in found["error_by_rows"]]
    assert rows[0] == 16
    assert 80 <= rows[-1] < 119
    assert found["error_by_rows"][-1]["mlogq"] < found["error_by_rows"][0]["mlogq"]
    beyond = {one["parameter"]: one for one in found["beyond"]}
    assert beyond.keys() == {"n", "ppn"}
    assert beyond["ppn"]["values"][0] > 16
    assert beyond["ppn"]["forms"]
    widths = np.subtract(beyond["n"]["high"], beyond["n"]["low"])
    assert (np.diff(widths) > 0).all()
    assert "Error on held-out rows by the number of rows" in (tmp_path / "e.html").read_text(encoding="utf-8")
    assert "error (MLogQ)" in quipu_here("tensor", "explain", "m.json", "--data", table).out
    (tmp_path / "other.csv").write_text("n,ppn,lay out\n1,1,dgz\n", encoding="utf-8")
    assert "no column 'time_s'" in quipu_here("tensor", "explain", "m.json", "--data", "other.csv").err


def test_open_intervals_are_shown(quipu_here: Quipu, table: Path) -> None:
    fit(quipu_here, table)
    rows = json.loads(quipu_here("tensor", "predict", "m.json", "--at", "n=-5,ppn=4,lay out=dgz", "--json").out)["rows"]
    assert (rows[0]["low"], rows[0]["high"]) == (0.0, None)
    tuned = ("tensor", "tune", "m.json", "--values", "n=-5")
    assert "open" in quipu_here(*tuned).out
    assert json.loads(quipu_here(*tuned, "--json").out)["configurations"][0]["high"] is None


def test_a_column_of_values_that_overflow_is_named(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "huge.csv").write_text("n,size,time\n1,1,1\n2,1e300,2\n3,2,3\n", encoding="utf-8")
    answer = quipu_here("tensor", "fit", "huge.csv")
    assert answer.code == 1
    assert "column 'size' holds values beyond 1e+100" in answer.err


@pytest.mark.filterwarnings("error")
def test_times_over_all_magnitudes_are_explained(quipu_here: Quipu, tmp_path: Path) -> None:
    """Ends of intervals are then 0 or infinite."""
    random = np.random.default_rng(3)
    rows = [f"{n},{size},{10.0 ** random.uniform(-300, 300)}" for n in (1, 2, 4, 8) for size in (10, 20, 40, 80)]
    (tmp_path / "wide.csv").write_text("\n".join(["n,size,time", *rows]) + "\n", encoding="utf-8")
    assert quipu_here("tensor", "fit", "wide.csv", "--budget", "0.02").code == 0
    for more in ([], ["--json"]):
        answer = quipu_here("tensor", "explain", "model.json", *more)
        assert (answer.code, answer.err) == (0, "")
        assert "Infinity" not in answer.out


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("levels", {"lay out": []}, "levels: the levels of 'lay out' are not the values of a parameter"),
        ("levels", {"color": ["red"]}, "levels: the levels of 'color' are not the values of a parameter"),
        ("spread_offset", 1e40, ""),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_model_that_was_changed(
    key: str, value: object, said: str, quipu_here: Quipu, table: Path, tmp_path: Path
) -> None:
    fit(quipu_here, table)
    file = tmp_path / "m.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}), encoding="utf-8")
    for command in (["explain"], ["tune"], ["predict", "--at", "n=10,ppn=4,lay out=dgz"]):
        answer = quipu_here("tensor", command[0], "m.json", *command[1:])
        assert answer.code == (1 if said else 0)
        assert answer.err == (f"quipu: error: m.json: {said}\n" if said else "")


@pytest.fixture
def odd_names(tmp_path: Path) -> Path:
    """A model of columns and categories with commas, blanks, brackets and quotes."""
    lines = ['"n, ""all"" [n]",# ranks,layout,time']
    for ranks in (1, 2, 4, 8):
        for n in (10, 20, 40):
            lines += [f'{n},{ranks},"col,major",{3 * n / ranks}', f"{n},{ranks},row=major,{n / ranks}"]
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_names_and_categories_in_quotes(quipu_here: Quipu, odd_names: Path) -> None:
    geometric = ("--geometric", '# ranks,"n, ""all"" [n]"')
    assert quipu_here("tensor", "fit", odd_names, "--budget", "0.02", "-o", "m.json", *geometric).code == 0
    at = '"n, ""all"" [n]"=20,layout="col,major",# ranks=4'
    predicted = quipu_here("tensor", "predict", "m.json", "--at", at, "--json")
    assert json.loads(predicted.out)["rows"][0]["predicted"] == pytest.approx(15.0, rel=0.1)
    at = 'layout="row=major"'
    values = '"# ranks"=1,2,"n, ""all"" [n]"=10,40'
    limit = '"# ranks" < 2 and layout == "row=major"'
    found = quipu_here("tensor", "tune", "m.json", "--at", at, "--values", values, "--constraint", limit, "--json")
    (first, second) = json.loads(found.out)["configurations"]
    assert first["values"] == {'n, "all" [n]': 10.0, "# ranks": 1.0, "layout": "row=major"}
    assert second["values"]['n, "all" [n]'] == 40.0


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            ("--at", "layout=col,major"),
            """choose one of: "col,major", "row=major"; write a name or value with a comma or = in""",
        ),
        (
            ("--at", "q=3"),
            """"n, ""all"" [n]", # ranks, layout; write a name or value with a comma or = in double quotes: --at '""",
        ),
        (("--constraint", "# ranks > 4"), 'with parameters written so: "n, \\"all'),
        (("--constraint", 'layout == "col"'), "'col' is not a value of layout; it has: \"col,major\", "),
        (("--constraint", 'layout < "col,major"'), "values of layout have no order: compare with == or !="),
    ],
)
def test_messages_say_how_names_are_quoted(
    quipu_here: Quipu, odd_names: Path, option: tuple[str, str], words: str
) -> None:
    assert quipu_here("tensor", "fit", odd_names, "--budget", "0.02", "-o", "m.json").code == 0
    answer = quipu_here("tensor", "tune", "m.json", *option)
    assert answer.code in (1, 2)
    assert words in answer.err


def test_names_that_a_program_would_take_for_numbers(quipu_here: Quipu, tmp_path: Path) -> None:
    """Texts such as 4_2, and digits of other alphabets, are categories, and not the number 42."""
    rows = [f"{grid},{n},{n * factor}" for n in (1, 2, 4, 8) for factor, grid in enumerate(("1_8", "2_4", "\u0663"), 1)]
    (tmp_path / "grids.csv").write_text("\n".join(["grid,n,time", *rows]) + "\n", encoding="utf-8")
    answer = quipu_here("tensor", "fit", "grids.csv", "--budget", "0.02", "-o", "m.json")
    assert answer.code == 0 and "categorical  grid" in answer.out
    answer = quipu_here("tensor", "predict", "m.json", "grids.csv")
    assert answer.code == 0
    answer = quipu_here("tensor", "tune", "m.json", "--at", "n=1_0")
    assert answer.code == 2 and "'1_0' is not a finite number" in answer.err


def test_few_rows_say_what_is_needed(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "few.csv").write_text("n,p,time\n10,2,0.1\n20,1,0.2\n", encoding="utf-8")
    answer = quipu_here("tensor", "fit", "few.csv", "-o", "m.json")
    said = " ".join(answer.out.split())
    assert "note: 2 rows are too few to estimate the error and the width of intervals: 4 are needed" in said
    assert "note: 2 rows cannot separate the effects of 2 parameters: at least 3 are needed" in said
