# SPDX-License-Identifier: Apache-2.0
"""`quipu report` with a second experiment, and with kernels."""

from __future__ import annotations

import json
import re
from pathlib import Path

from quipu.report.formats import format_filter

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
    assert "1 configuration of new not compared: the other does not contain them" in page
    data = data_of(page)
    assert data["points"] == [[2, 32], [2, 64], [2, 96], [2, 128]]
    against = data["against"]
    assert isinstance(against, dict)
    assert against["name"] == "old"
    assert against["values"]["blocks"][1] == [30 * n**3 // 2 for n in (32, 64, 96, 128)]
    assert (
        data_of((quipu_here("report", "new", "-o", "s.html"), (tmp_path / "s.html").read_text())[1])["against"] is None
    )


def test_a_single_run_is_no_statement_about_scaling(quipu_here: Quipu, tmp_path: Path) -> None:
    write_run(tmp_path / "one", 2, 32)
    assert quipu_here("report", "one", "-o", "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "One configuration: p=2, n=32" in page
    assert "scales with" not in page


def test_wrong_options_end_in_one_message(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    for words, code, message in (
        (("--against", "nowhere"), 1, "nowhere: the experiment does not exist"),
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
    assert ">main → MPI_Allreduce</td>" in page


def write_refinement(folder: Path, noise: float = 0.01, **budget: float) -> Path:
    for number, names in ((1, ("main", "sweep", "exchange")), (2, ("main", "sweep"))):
        for n in (32, 64, 96, 128):
            write_run(folder / f"iteration-{number}", 2, n)
        (folder / f"iteration-{number}.filter").write_text(format_filter(names, []))
    common = {"executed": 2, "seconds": 12.5}
    first = {"number": 1, "marked": 3, "overhead": 0.21, "predicted": 0.05, "coverage": 0.97, **common}
    later = {"start_and_end": 0.12, "noise": noise}
    second = {"number": 2, "marked": 2, "overhead": 0.031, **later, "predicted": None, "coverage": 0.93, **common}
    content = {"reference_seconds": 1.0, "iterations": [first, second], **budget}
    (folder / "refinement.json").write_text(json.dumps(content))
    return folder


def test_the_iterations_of_a_refinement(quipu_here: Quipu, tmp_path: Path) -> None:
    """Its folder is enough: the last iteration is the experiment; with another experiment it is named."""
    folder = write_refinement(tmp_path / "cycle", budget=0.05)
    assert quipu_here("report", folder, "-o", "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "What was instrumented: iterations of cycle" in page
    assert "2 iterations; the last measures 2 regions with an overhead of 3.1 %, within the budget of 5 %." in page
    rows = re.findall(r"<tr>(.*?)</tr>", page[page.index('id="iterations"') :].split("</table>")[0])
    cells = [re.findall(r">([^<]+)</t[dh]>", row) for row in rows]
    assert cells[1:] == [
        ["1", "3", "2", "-", "-", "21.0%", "0.0%", "5.0%", "97.0%", "12.5 s"],
        ["2", "2", "2", "0", "1", "3.1%", "12.0%", "-", "93.0%", "12.5 s"],
    ]
    refinement = data_of(page)["refinement"]
    assert isinstance(refinement, dict)
    assert refinement["budget"] == 0.05
    assert [row["overhead"] for row in refinement["rows"]] == [0.21, 0.031]
    write_refinement(tmp_path / "older")
    (tmp_path / "older" / "iteration-2.filter").unlink()
    words = ("report", folder / "iteration-1", "--refinement", tmp_path / "older", "-o", "s.html")
    assert quipu_here(*words).code == 0
    assert "with an overhead of 3.1 %.</p>" in (tmp_path / "s.html").read_text()
    write_refinement(tmp_path / "noisy", noise=0.06, budget=0.05)
    assert quipu_here("report", tmp_path / "noisy", "-o", "n.html").code == 0
    assert "overhead of 0 ±6.0 %, too noisy to compare with the budget of 5 %." in (tmp_path / "n.html").read_text()


def test_a_folder_without_a_refinement(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    for content, message in (
        (None, "has no refinement.json: give the folder that quipu refine wrote"),
        ('{"reference_seconds": 1, "iterations": []}', "refinement.json: contains no iteration yet"),
        ('{"reference_seconds": 1, "iterations": [{"number": 1}]}', "refinement.json"),
    ):
        if content is not None:
            (tmp_path / "refinement.json").write_text(content)
        answer = quipu_here("report", heat, "--refinement", tmp_path, "-o", "r.html")
        assert answer.code == 1
        assert message in answer.err
        assert not (tmp_path / "r.html").exists()
