# SPDX-License-Identifier: Apache-2.0
"""Tables of `quipu tensor` as spreadsheets, data frames and programs in Fortran write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas
import pytest

from .conftest import Quipu

SLOWER = {"old": 2, "new": 1}
ROWS = [(n, p, layout, n / p * SLOWER[layout]) for n in (10, 20, 40) for p in (1, 2, 4, 8) for layout in SLOWER]


def written(
    path: Path, number: Callable[[float], str], mark: str = ";", before: str = "", coding: str = "utf-8"
) -> Path:
    """Write the table, its times as `number` writes them."""
    lines = [mark.join(("Maß", "p", "layout", "Zeit"))]
    lines += [mark.join((str(n), str(p), layout, number(time))) for n, p, layout, time in ROWS]
    path.write_bytes((before + "\n".join(lines) + "\n").encode(coding))
    return path


def fit(quipu: Quipu, table: Path, *options: str) -> tuple[int, str, dict[str, object]]:
    answer = quipu("tensor", "fit", table, "--target", "Zeit", "--budget", "0.02", "-o", "m.json", "--json", *options)
    return answer.code, answer.err, json.loads(answer.out) if answer.out else {}


@pytest.mark.parametrize(
    ("number", "before", "mark"),
    [
        (lambda x: f"{x:.3E}".replace("E", "D"), "", ";"),
        (lambda x: f"{x:.3f}", "sep=;\r\n", ";"),
        (lambda x: f"{x:.3f}", "sep=|\n", "|"),
        (lambda x: f"{x:.3f}", "\ufeff", "\t"),
    ],
)
def test_tables_that_are_read(
    number: Callable[[float], str], before: str, mark: str, quipu_here: Quipu, tmp_path: Path
) -> None:
    code, said, document = fit(quipu_here, written(tmp_path / "t.csv", number, mark, before))
    assert code == 0, said
    assert (document["rows"], document["parameters"]) == (24, ["Maß", "p", "layout"])
    predicted = quipu_here("tensor", "predict", "m.json", "--at", "Maß=20,p=4,layout=old", "--json")
    assert json.loads(predicted.out)["rows"][0]["predicted"] == pytest.approx(10.0, rel=0.05)


def test_an_exponent_without_a_letter(quipu_here: Quipu, tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", lambda x: f"{x:.3f}-100")
    assert fit(quipu_here, table)[0] == 0
    predicted = quipu_here("tensor", "predict", "m.json", "--at", "Maß=20,p=4,layout=new", "--json")
    assert json.loads(predicted.out)["rows"][0]["predicted"] == pytest.approx(5e-100, rel=0.05)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (lambda x: f"{x:.2f}".replace(".", ","), "a number with a decimal comma"),
        (lambda x: f"{1000 + x:,.2f}", "a number with separators of thousands"),
        (lambda x: f"1 {100 + x:03.0f}", "a number with separators of thousands"),
    ],
)
def test_numbers_in_another_notation(
    number: Callable[[float], str], words: str, quipu_here: Quipu, tmp_path: Path
) -> None:
    code, said, _ = fit(quipu_here, written(tmp_path / "t.csv", number))
    assert code == 1
    assert f"t.csv:2: column 'Zeit' holds '{number(ROWS[0][3])}', {words}: write numbers as 1234.5" in said


def test_a_decimal_comma_in_one_line_of_a_parameter(quipu_here: Quipu, tmp_path: Path) -> None:
    lines = ["size,load,Zeit", *(f"{n},{'0.5' if n != 20 else chr(34) + '0,75' + chr(34)},{p}" for n, p, *_ in ROWS)]
    (tmp_path / "t.csv").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
    code, said, _ = fit(quipu_here, tmp_path / "t.csv")
    assert code == 1
    assert "t.csv:19: column 'load' holds '0,75', a number with a decimal comma" in said
    assert "for a column of names, add --categorical load" in said
    code, said, document = fit(quipu_here, tmp_path / "t.csv", "--categorical", "load")
    assert (code, document["categorical"]) == (0, ["load"]), said


def test_texts_among_numbers_are_noted(quipu_here: Quipu, tmp_path: Path) -> None:
    lines = ["size,cache,Zeit", *(f"{n},{'big' if p > 2 else 32},{time}" for n, p, _, time in ROWS)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, said, document = fit(quipu_here, tmp_path / "t.csv")
    assert code == 0, said
    assert "cache contains texts such as 'big' (line 6): all its values count as names" in str(document["notes"])


def test_another_encoding_is_named(quipu_here: Quipu, tmp_path: Path) -> None:
    code, said, _ = fit(quipu_here, written(tmp_path / "t.csv", str, coding="latin-1"))
    assert (code, said.count("t.csv:1: is not UTF-8 text")) == (1, 1)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_row_numbers_of_a_data_frame_are_no_parameter(suffix: str, quipu_here: Quipu, tmp_path: Path) -> None:
    data = pandas.DataFrame(ROWS, columns=["n", "p", "layout", "Zeit"], index=range(7, 7 + len(ROWS))).sample(frac=1.0)
    if suffix == "csv":
        data.to_csv(tmp_path / "t.csv")
    else:
        data.to_parquet(tmp_path / "t.parquet")
    code, said, document = fit(quipu_here, tmp_path / f"t.{suffix}")
    assert code == 0, said
    assert document["parameters"] == ["n", "p", "layout"]
    assert "has no name" in str(document["notes"])
    assert quipu_here("tensor", "predict", "m.json", tmp_path / f"t.{suffix}").code == 0


def test_a_frame_that_was_read_and_written_again(quipu_here: Quipu, tmp_path: Path) -> None:
    data = pandas.DataFrame(ROWS, columns=["n", "p", "layout", "Zeit"])
    data.to_csv(tmp_path / "once.csv")
    pandas.read_csv(tmp_path / "once.csv").to_csv(tmp_path / "twice.csv")
    code, _, document = fit(quipu_here, tmp_path / "twice.csv")
    assert (code, document["parameters"]) == (0, ["n", "p", "layout"])
    assert str(document["notes"]).count("has no name") == 2


def test_columns_of_one_name_and_one_without(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("n,p, n,Zeit,\n1,2,1,3,\n2,2,2,5,\n", encoding="utf-8")
    code, said, _ = fit(quipu_here, tmp_path / "t.csv")
    assert code == 1
    assert "has several columns called 'n': 1 and 3; column 5 of 5 has no name" in said


def test_texts_after_a_million_bytes_of_numbers(quipu_here: Quipu, tmp_path: Path) -> None:
    lines = ["n,Zeit", *("1,1" for _ in range(600_000)), "2,n/k", "3,3"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, said, document = fit(quipu_here, tmp_path / "t.csv")
    assert (code, document["rows"]) == (0, 600_001), said


@pytest.mark.parametrize(
    ("last", "code", "words"),
    [
        ("40,8,new,-0.5", 0, "1 row is left out: Zeit is not positive and finite (line 26 has -0.5)"),
        ("40,8,new,inf", 0, "Zeit is not positive and finite (line 26 has inf)"),
        ("40,8,new,", 0, "Zeit is not positive and finite (line 26 has none)"),
        ("4_0,8,new,1", 0, "Maß holds '4_0' (line 26), which is not a number: treated as missing"),
        ("Maß,p,layout,Zeit", 0, "Zeit holds 'Zeit' (line 26), which is not a number: treated as missing"),
        ("40,8,new", 1, "t.csv:26: '40,8,new' has 3 values, and the first line names 4 columns"),
        ("40,8,new,1,2", 1, "t.csv:26: '40,8,new,1,2' has 5 values, and the first line names 4 columns"),
    ],
)
def test_a_wrong_line_is_named(quipu_here: Quipu, tmp_path: Path, last: str, code: int, words: str) -> None:
    table = written(tmp_path / "t.csv", lambda x: f"{x:.3f}", ",")
    with table.open("a", encoding="utf-8") as file:
        file.write(last + "\n")
    found, said, document = fit(quipu_here, table)
    notes = document.get("notes", [])
    assert isinstance(notes, list)
    assert found == code and words in " | ".join((said, *notes))


def test_a_comment_before_the_names_and_dates(quipu_here: Quipu, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("# by hand\nn,Zeit\n1,2\n", encoding="utf-8")
    assert "t.csv:2: 'n,Zeit' has 2 values, and the first line names 1 column" in fit(quipu_here, tmp_path / "t.csv")[1]
    (tmp_path / "t.csv").write_text("day,n,Zeit\n2024-01-01,1,2\n2024-01-02,2,4\n", encoding="utf-8")
    said = fit(quipu_here, tmp_path / "t.csv")[1]
    assert "t.csv:2: column 'day' holds '2024-01-01' (date32[day])" in said and "--parameters" in said
    assert fit(quipu_here, written(tmp_path / "t.csv", lambda x: f"{x:.3f}", ";", '"sep=;"\n'))[0] == 0
