# SPDX-License-Identifier: Apache-2.0
"""The corpus of measured programs and its figures: benchmarks/programs.py."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import programs as benchmark
import pytest
from programs_corpus import DATA, Program, Target, experiment_of, programs, target_of, unpack
from programs_modelers import engine_of
from programs_scores import rows_of, summary
from quipu.modeling.experiment import Experiment, FloatArray

SMALL = "prk_Reduce"
# Folders of a machine on which programs were measured.
ABSOLUTE = re.compile(rb"/(?:work|root|home|tmp|scratch|usr|opt)/[\w.-]+")


def read(name: str, folder: Path) -> tuple[Experiment, Target]:
    """Return the runs of a program and its target."""
    (program,) = programs([name])
    unpacked = unpack(program, folder)
    return experiment_of(program, unpacked, "alone"), target_of(unpacked)


def measured(experiment: Experiment, target: Target, metric: str) -> FloatArray:
    """Return the values of the target by the call paths of the experiment, as perfect predictions."""
    values = target.values[metric]
    keys = [experiment.tree.key(path) for path in range(len(experiment.tree))]
    return np.array([[values[key].mean() if key in values else 0.0] * 3 for key in keys])


def test_every_program_has_archives_and_a_line_on_the_page() -> None:
    entries = json.loads((DATA / "programs.json").read_text(encoding="utf-8"))
    names = [own["name"] for own in entries]
    page = (DATA / "README.md").read_text(encoding="utf-8")
    assert sorted(names) == sorted(path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz"))
    assert all(f"| {own['name']} |" in page and own["commit"] in page for own in entries)
    assert sum(path.stat().st_size for path in DATA.glob("*.tar.xz")) < 40e6


def test_programs_put_aside_are_chosen_by_their_names() -> None:
    for program in programs():
        assert program.put_aside == (hashlib.sha256(program.name.encode()).hexdigest()[:2] < "59"), program.name


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.name)
def test_archives_are_complete_and_name_no_machine(program: Program) -> None:
    (entry,) = [
        own for own in json.loads((DATA / "programs.json").read_text(encoding="utf-8")) if own["name"] == program.name
    ]
    runs: dict[str, int] = {}
    with tarfile.open(DATA / f"{program.name}.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None, member.name
            content = file.read()
            assert not ABSOLUTE.search(content), member.name
            if member.name.endswith("run.json"):
                run = json.loads(content)
                assert {run["launcher"]["host"], *(node["host"] for node in run["nodes"])} == {"node"}
                group = member.name.split("/")[1]
                runs[group] = runs.get(group, 0) + 1
    repetitions = entry["repetitions"]
    assert runs == {
        "runs": len(entry["p"]) * len(entry["n"]) * repetitions,
        "counts": len(entry["counts"]) * repetitions,
        "target": entry["target_repetitions"],
    }


def test_a_perfect_prediction_has_a_score_of_zero(tmp_path: Path) -> None:
    experiment, target = read(SMALL, tmp_path)
    rows = rows_of(experiment, target, "messages_sent", measured(experiment, target, "messages_sent"))
    found = summary([rows])
    assert rows
    assert found["score"] == 0.0
    assert [found[name] for name in ("within1", "within5", "inside", "exact")] == [100.0] * 4


def test_errors_cost_the_width_and_the_distance_outside(tmp_path: Path) -> None:
    experiment, target = read(SMALL, tmp_path)
    perfect = measured(experiment, target, "messages_sent")
    (wide, *_) = rows_of(experiment, target, "messages_sent", perfect * np.array([1.0, 0.9, 1.1]))
    (off, *_) = rows_of(experiment, target, "messages_sent", perfect * 1.02)
    (unseen, *_) = rows_of(experiment, target, "messages_sent", perfect * 0.0)
    assert wide.score == pytest.approx(0.2)
    assert (wide.inside, wide.exact) == (True, True)
    assert off.score == pytest.approx(20 * 0.02)
    assert (off.inside, off.exact) == (False, False)
    assert unseen.score == pytest.approx(20.0)


def test_an_engine_is_named_by_its_module_and_judged_with_both_sets_of_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "last_value.py").write_text(
        "import numpy as np\n"
        "def predict(experiment, points):\n"
        "    last = {name: np.nan_to_num(own[:, -1, :1]) for name, own in experiment.values.items()}\n"
        "    return [{name: np.repeat(own, 3, axis=1) for name, own in last.items()} for point in points]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("sys.argv", ["programs.py", "--modelers", "", "--engine", "last_value:predict", SMALL])
    benchmark.main()
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["programs"] == 1
    figures = result["last_value:predict"]
    for points in ("alone", "counts"):
        assert set(figures[points]["all"]["instructions"]) >= {"within1", "within5", "inside", "score", "exact"}


def test_count_only_runs_are_further_points(tmp_path: Path) -> None:
    (program,) = programs([SMALL])
    unpacked = unpack(program, tmp_path)
    alone, more = experiment_of(program, unpacked, "alone"), experiment_of(program, unpacked, "counts")
    place = alone.parameters.index("p")
    assert more.points[:, place].max() > alone.points[:, place].max()
    assert more.points[:, place].max() <= target_of(unpacked).point["p"]
    assert "time" not in more.values


@pytest.mark.parametrize("text", ["no_such_module:predict", "json:no_such_function"])
def test_an_engine_that_does_not_exist_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="give MODULE:FUNCTION"):
        engine_of(text)


def test_a_program_that_is_not_there_is_an_error() -> None:
    names: Sequence[str] = ["unheard-of"]
    with pytest.raises(ValueError, match="not in the corpus"):
        programs(names)
