"""`quipu report` with another experiment beside it, and with kernels."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .conftest import Quipu
from .runs import write_run


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'id="quipu-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, object] = json.loads(found[1])
    return data


def test_against_another_experiment(quipu_here: Quipu, tmp_path: Path) -> None:
    for n in (32, 64, 96, 128):
        write_run(tmp_path / "old", 2, n)
        write_run(tmp_path / "new", 2, n, blocks=2)
    write_run(tmp_path / "new", 4, 32)
    answer = quipu_here("report", "new", "--against", "old", "-o", "r.html")
    assert (answer.code, answer.err) == (0, "quipu: wrote r.html\n")
    page = (tmp_path / "r.html").read_text()
    assert "compared with old" in page
    assert "1 configuration of new not compared: the other has no such" in page
    data = data_of(page)
    assert data["points"] == [[2, 32], [2, 64], [2, 96], [2, 128]]
    against = data["against"]
    assert isinstance(against, dict)
    assert against["name"] == "old"
    assert against["values"]["blocks"][1] == [30 * n**3 // 2 for n in (32, 64, 96, 128)]
    assert (
        data_of((quipu_here("report", "new", "-o", "s.html"), (tmp_path / "s.html").read_text())[1])["against"] is None
    )


def test_wrong_options_end_in_one_message(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    for words, code, message in (
        (("--against", "nowhere"), 1, "nowhere: there is no such experiment"),
        (("--machine", "none.json"), 2, "--machine belongs to --kernels"),
        (("--kernels", "--machine", "none.json"), 1, "none.json"),
    ):
        answer = quipu_here("report", heat, "-o", "r.html", *words)
        assert answer.code == code
        assert answer.err.startswith("quipu: error: ")
        assert message in answer.err
        assert not (tmp_path / "r.html").exists()


def test_kernels_are_in_the_report_if_they_are_asked_for(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    assert quipu_here("report", heat, "--kernels", "--at", "p=64,n=160", "-o", "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "Kernels at p=64, n=160" in page
    assert "limited by" in page
