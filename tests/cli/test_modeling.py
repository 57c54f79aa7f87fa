# SPDX-License-Identifier: Apache-2.0
"""`quipu model`, `predict`, `filter` and `report` on a planted experiment."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.experiment import Region
from quipu.report.formats import read_filter
from quipu.report.text import waiting_texts
from quipu.report.tree_views import configuration_rows

from .conftest import Quipu
from .runs import write_run


def test_models_have_the_planted_form(quipu_here: Quipu, heat: Path) -> None:
    answer = quipu_here("model", heat, "--json", "--metric", "blocks,bytes_sent")
    assert answer.code == 0
    found = {(tuple(entry["path"]), entry["metric"]): entry for entry in json.loads(answer.out)["models"]}
    assert found[("main", "sweep"), "blocks"]["text"] == "30·n³/p"
    assert found[("main", "exchange", "MPI_Sendrecv"), "bytes_sent"]["text"] == "160·n²"
    assert found[("main", "sweep"), "blocks"]["model"]["terms"][0]["coefficient"] == pytest.approx(30)
    assert (("main", "sweep"), "bytes_sent") not in found


def test_models_as_a_table_chosen_by_path(quipu: Quipu, heat: Path) -> None:
    answer = quipu("model", heat, "--path", "*sweep", "-m", "blocks")
    assert answer.out.split("\n\n")[-1].splitlines()[-2:] == [
        "call path    metric  model    SMAPE  basis",
        "main->sweep  blocks  30·n³/p   0.0%  measured",
    ]
    everything = quipu("model", heat, "--all", "-m", "bytes_sent").out
    assert everything.count("bytes_sent") == 5


def test_models_of_the_call_paths_with_most(quipu_here: Quipu, heat: Path) -> None:
    answer = quipu_here("model", heat, "--top", "1", "-m", "bytes_sent,blocks", "--json")
    assert [(entry["path"], entry["metric"]) for entry in json.loads(answer.out)["models"]] == [
        (["main", "exchange", "MPI_Sendrecv"], "bytes_sent")
    ]
    answer = quipu_here("model", heat, "--top", "1", "-m", "blocks")
    assert answer.out.splitlines()[-1].startswith("main->sweep ")
    assert re.search(
        r"^quipu: \d+ further call paths? (is|are) not shown \(--top N, --all\)$", answer.err, re.MULTILINE
    )
    assert quipu_here("model", heat, "--top", "0").code == 2
    answer = quipu_here("model", heat, "--top", "3", "--path", "*nothing*")
    assert (answer.code, answer.out) == (1, "")


def test_formulas_in_ascii(quipu: Quipu, heat: Path) -> None:
    answer = quipu("model", heat, "-m", "blocks,time", PYTHONIOENCODING="ascii")
    assert answer.code == 0
    assert "30*n^3/p" in answer.out
    assert "?" not in answer.out


def test_a_file_of_models_predicts_like_its_experiment(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    assert quipu_here("model", heat, "-o", "models.json").code == 0
    answers = [
        json.loads(quipu_here("predict", source, "--at", "p=1024,n=1e4", "--json").out)
        for source in (heat, tmp_path / "models.json")
    ]
    assert answers[0] == answers[1]
    ranking = answers[0]["ranking"]
    assert ranking[0]["path"] == ["main", "sweep"]
    assert ranking[0]["extrapolation"] is True
    assert ranking[0]["value"] == pytest.approx(2e-8 * 1e12 / 1024, rel=0.05)
    assert ranking[0]["low"] <= ranking[0]["value"] <= ranking[0]["high"]


@pytest.fixture(scope="module")
def switching(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of Extra-P: one call path with much noise, one whose behaviour changes after p=32."""
    random = np.random.default_rng(1)
    values = {"main->noisy": lambda p: 0.004, "main->gather": lambda p: 3 + 2 * np.log2(p) if p <= 32 else 0.4 * p}
    noise = {"main->noisy": 0.9, "main->gather": 0.03}
    measurements = {
        name: {
            "time": [
                {"point": [p], "values": (of(p) * (1 + noise[name] * random.uniform(-1, 1, 5))).tolist()}
                for p in (2, 4, 8, 16, 32, 64, 128, 256)
            ]
        }
        for name, of in values.items()
    }
    path = tmp_path_factory.mktemp("switching") / "algorithm.json"
    path.write_text(json.dumps({"parameters": ["p"], "measurements": measurements}))
    return path


def test_noise_and_changes_of_behaviour(quipu_here: Quipu, switching: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    plain = quipu_here("model", switching).out
    assert "main->gather  time    from p=32 to 64" in plain
    assert "repetitions cannot support more than a constant" in plain
    assert "noise of time" not in plain
    told = quipu_here("model", switching, "--noise").out
    assert "noise of time  ranges of" in told
    rows = [line for line in told.split("\n\n")[-1].splitlines()[1:] if not line.startswith(" ")]
    assert [row.split()[2] for row in rows] == ["5", "5"]
    data = json.loads(quipu_here("model", switching, "--noise", "--json").out)
    assert [own["between"] for own in data["changes"]] == ["from p=32 to 64"]
    gather = next(own for own in data["noise"] if own["path"][-1] == "gather")
    assert 0.01 < gather["range"] < 0.06 and gather["low"] < 0 < gather["high"]
    far = quipu_here("predict", switching, "--at", "p=1024").out
    assert "main->gather changes between p=32 and p=64" in far and "the model of this range predicts 4" in far


def test_selectors_to_compare_with(quipu_here: Quipu, switching: Path, tmp_path: Path) -> None:
    for selector in ("smape", "extra-p"):
        answer = quipu_here("model", switching, "--selector", selector, "-o", "other.json", "--force")
        assert answer.code == 0 and f"{selector}, for comparison" in answer.out
    assert "other.json contains models" in quipu_here("model", "other.json", "--selector", "smape").err
    assert "give the measurements to --noise" in quipu_here("model", "other.json", "--noise").err
    assert quipu_here("model", switching, "--selector", "best").code == 2


def test_a_ranking_within_the_measured_range_is_no_extrapolation(quipu: Quipu, heat: Path) -> None:
    answer = quipu("predict", heat, "--at", "p=4,n=64", "--inclusive", "--top", 2)
    assert "extrapolation" not in answer.out
    assert [line.split()[1] for line in answer.out.splitlines() if line[:1].isdigit()] == ["main", "main->sweep"]
    assert "3 further call paths" in answer.err


def test_a_ranking_leaves_out_what_has_none_of_the_metric(quipu: Quipu, heat: Path) -> None:
    answer = quipu("predict", heat, "--at", "p=4,n=64", "--metric", "bytes_sent")
    listed = [line.split()[1] for line in answer.out.splitlines() if line[:1].isdigit()]
    nothing = int(answer.err.split(" call paths have no exclusive bytes_sent")[0].split()[-1])
    everything = json.loads(quipu("predict", heat, "--at", "p=4,n=64", "--metric", "bytes_sent", "--json").out)
    rows = everything["ranking"]
    assert len(listed) + nothing == len(rows) and all(row["value"] == 0 for row in rows[len(listed) :])


def test_a_filter_keeps_what_matters(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    answer = quipu_here("filter", heat, "--at", "p=64,n=500", "-o", "score-p.filter")
    assert answer.code == 0
    assert "wrote score-p.filter: 2 regions" in answer.err
    parsed = read_filter(tmp_path / "score-p.filter")
    assert [parsed.includes(Region(name, name)) for name in ("main", "sweep", "exchange")] == [True, True, False]
    again = quipu_here("filter", heat, "--at", "p=64,n=500", "-o", "score-p.filter", "--threshold", 0, "--json")
    assert again.code == 0
    assert {entry["region"] for entry in json.loads(again.out)["regions"] if entry["kept"]} == {
        "main",
        "sweep",
        "exchange",
    }


def test_a_filter_of_measurements_without_linker_names(quipu_here: Quipu, tmp_path: Path) -> None:
    """Files of Extra-P contain displayed names, which a MANGLED rule would never match."""
    lines = ["PARAMETER n", "POINTS 2 4 8 16 32"]
    for path in ("main", "main->solve::run(int, double)"):
        lines += [f"REGION {path}", "METRIC time", *(f"DATA {n}" for n in (2, 4, 8, 16, 32))]
    (tmp_path / "run.txt").write_text("\n".join(lines) + "\n")
    answer = quipu_here("filter", "run.txt", "--at", "n=64", "-o", "score-p.filter")
    assert "1 of 2 regions, such as solve::run(int, double), have no linker name" in answer.err
    assert "only bodies of OpenMP constructs have one" in answer.err  # also of programs that Quipu measured
    parsed = read_filter(tmp_path / "score-p.filter")
    named = [Region("_ZN5solve3runEid", "solve::run(int, double)"), Region("_ZN5solve5resetEv", "solve::reset()")]
    assert [parsed.includes(region) for region in named] == [True, False]
    assert (
        "the file contains their displayed names" in quipu_here("filter", "run.txt", "--at", "n=64", "-f", "names").err
    )


def test_a_filter_says_which_program_shares_are_of(quipu_here: Quipu, tmp_path: Path) -> None:
    """The start of MPI grows with the ranks and takes nearly all of the time; a filter does not contain it."""
    times = {"main": "0.0001", "main->MPI_Init": "{p}", "main->work": "0.05"}
    lines = ["PARAMETER p", "POINTS 2 4 8 16 32"]
    for path, time in times.items():
        lines += [f"REGION {path}", "METRIC time", *(f"DATA {time.format(p=p)}" for p in (2, 4, 8, 16, 32))]
    (tmp_path / "start.txt").write_text("\n".join(lines) + "\n")
    data = json.loads(quipu_here("predict", "start.txt", "--at", "p=4096", "--json").out)
    shares = {entry["path"][-1]: entry["share"] for entry in data["ranking"]}
    assert set(shares) == {"main", "work"}
    assert data["program"]["value"] == pytest.approx(0.0501, rel=0.01)
    assert [entry["path"][-1] for entry in data["start_and_end"]] == ["start and end", "MPI_Init"]
    assert data["start_and_end"][0]["value"] == pytest.approx(4096, rel=0.01)
    answer = quipu_here("filter", "start.txt", "--at", "p=4096", "--json")
    note = "shares are of 50.1 ms, the program without the start and end of MPI, which take 4096 s"
    assert note in answer.err and f"# {note}" in (tmp_path / "score-p.filter").read_text()
    regions = {entry["region"]: entry["share"] for entry in json.loads(answer.out)["regions"]}
    assert regions["work"] == pytest.approx(0.998, abs=0.001) == shares["work"]
    for command in (["model", "start.txt"], ["diagnose", "start.txt", "--at", "p=4096"]):
        assert "start and end of MPI" in quipu_here(*command).out
    predicted = quipu_here("predict", "start.txt", "--at", "p=4096").out.splitlines()
    assert next(line.split() for line in predicted if line.startswith("program"))[1:3] == ["50.1", "ms,"]
    assert predicted[-2].split()[:3] == ["start", "and", "end"]


def test_a_prediction_says_how_far_it_is_beyond(quipu_here: Quipu, heat: Path) -> None:
    near, far = (quipu_here("predict", heat, "--at", f"p={p},n=64").out for p in (32, 16 * 512))
    assert "note: extrapolation: p=32 is 2× beyond the measured 1 to 16" in near
    assert "note: far extrapolation: p=8192 is 512× beyond the measured 1 to 16" in far
    assert next(line for line in near.splitlines() if "main->sweep" in line).count("p 2× ") == 1
    assert next(line for line in far.splitlines() if "main->sweep" in line).count("p 512× ") == 1
    data = json.loads(quipu_here("predict", heat, "--at", "p=32,n=640", "--json").out)
    assert data["beyond"] == data["ranking"][0]["beyond"] == {"p": 2, "n": 4}
    assert "beyond" not in quipu_here("predict", heat, "--at", "p=4,n=64").out


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment on two processors: 4 and 8 ranks are oversubscribed, and take two and four times as long."""
    folder = tmp_path_factory.mktemp("crowded") / "runs"
    for p in (1, 2, 4, 8):
        node = {"host": "node1", "cpus": 2, "ranks": [{"rank": rank} for rank in range(p)]}
        for n in (32, 64, 96, 128):
            write_run(folder, p, n, slower=max(1.0, p / 2), nodes=(node,))
    return folder


def test_oversubscribed_runs_are_marked_in_every_view(quipu_here: Quipu, crowded: Path, tmp_path: Path) -> None:
    points = "8 configurations: p = 4, 8; n = 32, 64, 96, 128"
    data = json.loads(quipu_here("predict", crowded, "--at", "p=64,n=128", "--json").out)
    marked = {entry["path"][-1]: entry["oversubscribed"] for entry in data["ranking"]}
    assert marked == {"main": False, "sweep": False, "exchange": False, "MPI_Sendrecv": True, "MPI_Allreduce": True}
    sweep = next(entry for entry in data["ranking"] if entry["path"][-1] == "sweep")
    assert sweep["value"] == pytest.approx(2e-8 * 128**3 / 64, rel=0.05)
    assert sweep["beyond"] == {"p": 32}  # of the two values of p that its model rests on
    table = quipu_here("predict", crowded, "--at", "p=64,n=128").out
    assert points in table.replace("\n", " ")
    assert len(re.findall(r"  oversubscribed *(?:\n|  )", table)) == 2
    effort = quipu_here("predict", crowded, "--at", "p=64,n=128", "-m", "bytes_sent").out
    assert "oversubscribed" not in effort
    models = json.loads(quipu_here("model", crowded, "--metric", "time,blocks", "--json").out)["models"]
    assert {(one["path"][-1], one["metric"]) for one in models if one["oversubscribed"]} == {
        ("MPI_Sendrecv", "time"),
        ("MPI_Allreduce", "time"),
    }
    for command in (["show"], ["model"], ["diagnose", "--at", "p=64,n=128"], ["filter", "--at", "p=64,n=128"]):
        answer = quipu_here(command[0], crowded, *command[1:])
        assert "than processors" in (answer.out + answer.err).replace("\n", " "), command
    assert "this run had more ranks or threads than processors" in quipu_here("show", crowded / "p=8,n=64.r1").out
    assert json.loads(quipu_here("show", crowded, "--json").out)["oversubscribed"] is True
    assert json.loads(quipu_here("show", crowded, "--at", "p=2", "--json").out)["oversubscribed"] is False
    assert quipu_here("report", crowded, "-o", "report.html").code == 0
    page = json.loads((tmp_path / "report.html").read_text().split('id="quipu-data">')[1].split("</script>")[0])
    assert page["oversubscribed"] == [False] * 8 + [True] * 8
    assert "oversubscribed" in quipu_here("export", crowded, "-o", "crowded.json").err


def test_one_rank_on_a_loaded_machine_is_not_called_oversubscribed(crowded: Path) -> None:
    measured = load_experiment(crowded)
    loaded = np.broadcast_to(measured.points[:, :1] == 1, measured.measured_runs.shape)
    found = replace(measured, loaded=loaded)
    marks = {row.point[0]: (row.oversubscribed, row.loaded) for row in configuration_rows(found)}
    assert marks == {1: (False, True), 2: (False, False), 4: (True, False), 8: (True, False)}
    assert waiting_texts([measured, found]) == [
        "oversubscribed (more ranks than processors): 8 configurations: p = 4, 8; n = 32, 64, 96, 128",
        "on a loaded machine: 4 configurations: p = 1; n = 32, 64, 96, 128",
    ]
    assert "on a loaded machine" in found._repr_html_()


def test_where_all_runs_are_oversubscribed_no_model_is_said_to_leave_them_out(
    quipu_here: Quipu, crowded: Path, tmp_path: Path
) -> None:
    (tmp_path / "all").mkdir()
    for run in (*crowded.glob("p=4,*"), *crowded.glob("p=8,*")):
        shutil.copytree(run, tmp_path / "all" / run.name)
    for command in (("model", "all"), ("predict", "all", "--at", "p=64,n=128")):
        text = quipu_here(*command).out.replace("\n", " ")
        assert "[oversubscribed-models]" in text
        assert "leave them out" not in text
    diagnosis = quipu_here("diagnose", "all", "--at", "p=64,n=128").out.replace("\n", " ")
    assert "measure at least 4 values of p and of n, with a processor for each rank" in diagnosis


def test_a_file_of_models_keeps_what_is_oversubscribed(quipu_here: Quipu, crowded: Path) -> None:
    assert quipu_here("model", crowded, "-o", "models.json").code == 0
    answers = [quipu_here("predict", of, "--at", "p=64,n=128", "--json").out for of in (crowded, "models.json")]
    assert answers[0] == answers[1]


def test_a_rank_that_takes_much_longer_is_said_in_every_view(quipu_here: Quipu, tmp_path: Path) -> None:
    for p in (1, 2, 4, 8):
        for n in (32, 64, 128):
            write_run(tmp_path / "runs", p, n, first=1e-3 * p * 32 / n)
    note = re.compile(
        r"slowest rank: 9\.\d+ ms at p=8, n=32, 4\.\d+× the mean over ranks, and the run takes as long( .*)?$"
    )
    at = ("--at", "p=64,n=128")
    assert quipu_here("model", "runs", "-o", "models.json").code == 0
    for source in ("runs", "models.json"):
        (found,) = filter(note.match, json.loads(quipu_here("predict", source, *at, "--json").out)["notes"])
        assert found.endswith("(--over-ranks max) [slowest-rank]")
        assert "slowest" not in quipu_here("predict", source, *at, "--metric", "blocks").out
    (found,) = filter(
        note.match, json.loads(quipu_here("predict", "runs", *at, "--over-ranks", "max", "--json").out)["notes"]
    )
    assert found.endswith("and the run takes as long [slowest-rank]")
    assert "slowest rank: " in quipu_here("diagnose", "runs", *at).out
    for shown in (("runs", "--at", "p=8,n=32"), ("runs/p=8,n=32.r1",), ("runs/p=8,n=32.r1", "--ranks")):
        assert [*filter(note.match, json.loads(quipu_here("show", *shown, "--json").out)["notes"])]
    assert "slowest" not in quipu_here("show", "runs", "--at", "p=1,n=32").out
    assert quipu_here("report", "runs", "-o", "report.html").code == 0
    page = json.loads((tmp_path / "report.html").read_text().split('id="quipu-data">')[1].split("</script>")[0])
    assert note.match(f"slowest rank: {page['slowest']['text']}")


def test_a_report(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    assert quipu_here("report", heat, "-o", "report.html", "--at", "p=64").code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "mpirun -n … ./heat …" in page
    assert "50 complete" in page
    data = json.loads(page.split('id="quipu-data">')[1].split("</script>")[0])
    assert data["target"] == [64, 160]
    assert {model["metric"] for model in data["models"]} == {"time", "visits", "blocks", "bytes_sent", "comm_size"}
    assert quipu_here("report", heat, "-o", "report.html").code == 0  # its own earlier output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["model", "nowhere"], 1, "nowhere: the experiment does not exist"),
        (["model", "{heat}", "--metric", "flops"], 1, "no models of metric 'flops'"),
        (["model", "{heat}/p=4,n=32.r1/values.parquet"], 1, "is a file of a run: give its folder"),
        (["model", "precious.txt"], 1, "precious.txt"),
        (["model", "{heat}", "-o", "precious.txt"], 2, "precious.txt exists and contains no file of models"),
        (["predict", "{heat}"], 2, "--at: no value for p, n; write --at p=NUMBER,n=NUMBER"),
        (["predict", "{heat}", "--at", "p=4,n=0"], 2, "--at: n=0: the number must be above 0"),
        (["predict", "{heat}", "--at", "p=4,n=1,q=2"], 2, "no parameter q"),
        (["predict", "{heat}", "--at", "p=4,n=9", "--metric", "flops"], 1, "no models of metric 'flops'"),
        (["filter", "{heat}", "--at", "p=4,n=9", "--threshold", "2"], 2, "--threshold 2"),
        (
            ["filter", "{heat}", "--at", "p=4,n=9", "-o", "precious.txt"],
            2,
            "precious.txt exists and contains no filter file",
        ),
        (["filter", "{heat}", "--at", "p=4,n=9", "-o", "."], 2, ". is a folder"),
        (["filter", "{heat}", "--at", "p=4,n=9", "-o", "no/f"], 2, "no/f: the folder no does not exist"),
        (["report", "{heat}", "-o", "precious.txt"], 2, "precious.txt exists and contains no report"),
        (["report", "{heat}", "--at", "q=1"], 2, "--at: no parameter q"),
        (["report", "empty"], 1, "empty: contains no run archive"),
    ],
)
def test_one_message(
    arguments: list[str], code: int, words: str, *, quipu_here: Quipu, heat: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("# notes of years\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    answer = quipu_here(*(argument.replace("{heat}", str(heat)) for argument in arguments))
    assert answer.code == code
    assert answer.err.startswith("quipu: error: ")
    assert words in answer.err
    assert precious.read_text(encoding="utf-8") == "# notes of years\n"


def test_a_full_disk_is_one_message(quipu: Quipu, heat: Path) -> None:
    answer = quipu("filter", heat, "--at", "p=4,n=64", "-o", "/dev/full")
    assert answer.code == 1
    assert "/dev/full: No space left on device" in answer.err


def test_a_folder_that_may_not_be_written(quipu: Quipu, heat: Path) -> None:
    answer = quipu("report", heat, "-o", "/proc/report.html")
    assert answer.code == 1
    assert answer.err.startswith("quipu: error: /proc/report.html: ")


def test_a_filter_of_what_ranks_share_unevenly(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    """Rank 2 takes 1.5 % longer than the mean, the largest part of it in the sweep."""
    run = heat / "p=4,n=160.r1"
    answer = quipu_here("filter", run, "--imbalance", 0.01)
    assert answer.code == 0
    kept = (tmp_path / "score-p.filter").read_text().split("INCLUDE MANGLED\n")[1].splitlines()
    assert kept == ["main", "sweep", "SCOREP_REGION_NAMES_END"]
    assert "2% imbalance" in answer.err
    assert "main->sweep" in answer.err
    assert "3 regions" in quipu_here("filter", run, "--imbalance", 0.01, "--threshold", 0).err
    by_ratio = quipu_here("filter", run, "--imbalance", 1.01, "--imbalance-metric", "efficiency")
    assert by_ratio.err.endswith("score-p.filter: 2 regions\n")
    assert quipu_here("filter", run, "--imbalance", 0.2, "--force").err.endswith("score-p.filter: 0 regions\n")
    for words, fault in (
        ((run, "--imbalance", 2), "percentage needs a number above 0 and up to 1"),
        (
            (run, "--imbalance", 1, "--imbalance-metric", "efficiency"),
            "efficiency needs a number above 1, such as 1.05",
        ),
        ((run, "--imbalance", 1, "--imbalance-metric", "range"), "choose one of percentage, efficiency, variation"),
        ((heat, "--imbalance", 0.05), "needs one run"),
        ((heat / "p=1,n=160.r1", "--imbalance", 0.05), "at least two ranks"),
        ((run, "--imbalance", 0.05, "--at", "p=8", "--json"), "--at, --json: --imbalance uses"),
    ):
        refused = quipu_here("filter", *words)
        assert refused.code == 2
        assert fault in refused.err
