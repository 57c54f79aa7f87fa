# SPDX-License-Identifier: Apache-2.0
"""Folders of Cube profiles in Extra-P's naming."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from peers import needs
from quipu.agent.cli.main import run_command_line
from quipu.modeling.errors import EnvironmentProblem, FormatError
from quipu.modeling.experiment import RegionKind
from quipu.report.formats.detect import is_folder_of_others, read_experiment
from quipu.report.formats.profiles.folders import find_profiles

from . import real_extrap
from .extrap_samples import CubeMetric, write_cube
from .test_extrap_reading import same

pytestmark = needs("pycubexr")


def write_folder(folder: Path, send: bool = True) -> Path:
    """Write profiles of p = 2, 4 and n = 10, 20 with two repetitions and two ranks."""
    for p in (2, 4):
        for n in (10, 20):
            for r in (1, 2):
                time: list[list[float]] = [[n + 10 * p + r + 0.5, n + 10 * p + r], [p + n, 2 * p + n], [0.25, 0.75]]
                visits = [[1, 1], [n, n], [p, p]]
                rows = slice(0, 3 if send else 2)
                write_cube(
                    folder / f"heat.p{p}.n{n}.r{r}" / "profile.cubex",
                    {
                        "visits": ("UINT64", "EXCLUSIVE", visits[rows]),
                        "time": ("DOUBLE", "INCLUSIVE", time[rows]),
                    },
                    send=send,
                )
    return folder


def test_profiles_read_as_in_extrap(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "heat")
    experiment = read_experiment(folder)
    theirs = real_extrap.read("cube", folder)
    for row in theirs["rows"]:  # Extra-P sees values of single ranks, we see their mean
        assert row[6] == 2
    labels = [experiment.tree.label(node) for node in range(3)]
    assert labels == ["main", "main->sweep(int)", "main->MPI_Send"]
    means = {(row[0], row[1], tuple(row[2])): row[3] for row in theirs["rows"]}
    for metric, values in experiment.values.items():
        for node, label in enumerate(labels):
            for where, point in enumerate(experiment.points):
                assert values[node, where].mean() == pytest.approx(means[label, metric, tuple(point)], rel=1e-12)
    assert len(means) == 3 * 2 * 4
    assert experiment.parameters == ("p", "n")
    assert experiment.values["time"].shape == (3, 4, 2)
    assert experiment.metric("time").unit == "s"
    sweep, send = experiment.tree.region_of(1), experiment.tree.region_of(2)
    assert (sweep.name, sweep.display, sweep.file, sweep.line) == ("_Z5sweepi", "sweep(int)", "heat.c", 3)
    assert (send.name, send.kind, send.line) == ("MPI_Send", RegionKind.MPI, 0)


def test_the_program_is_one_region_whatever_its_arguments_are(tmp_path: Path) -> None:
    """In Score-P's profile, this region has the executable's name and the command line as linker name."""
    for n in (10, 20):
        place = tmp_path / "heat" / f"heat.n{n}.r1" / "profile.cubex"
        write_cube(
            place, {"visits": ("UINT64", "EXCLUSIVE", [[1, 1], [n, n], [2, 2]])}, command_line=f"/a/heat.{n} {n} 5"
        )
    experiment = read_experiment(tmp_path / "heat")
    assert [experiment.tree.label(node) for node in range(len(experiment.tree))] == [
        "program",
        "program->sweep(int)",
        "program->MPI_Send",
    ]
    assert experiment.values["visits"][:, :, 0].tolist() == [[1, 1], [10, 20], [2, 2]]


def test_a_filter_does_not_name_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for n in (10, 20, 40, 80, 160):
        metrics: dict[str, CubeMetric] = {
            "visits": ("UINT64", "EXCLUSIVE", [[1, 1], [n, n], [2, 2]]),
            "time": ("DOUBLE", "EXCLUSIVE", [[3.0] * 2, [n * 1e-1] * 2, [0.002] * 2]),
        }
        place = tmp_path / "all" / f"heat.n{n}.r1" / "profile.cubex"
        write_cube(place, metrics, command_line=f"/bin/heat-{n}")
    for options in ((), ("--overhead", "0.05")):
        assert run_command_line(["filter", "all", "--at", "n=320", *options, "-o", "x.filter"]) == 0
        rules = [line for line in (tmp_path / "x.filter").read_text().splitlines() if not line.startswith("#")]
        assert [line for line in rules if "SCOREP" not in line] == ["EXCLUDE *", "INCLUDE MANGLED", "_Z5sweepi"]
        assert "program" not in capsys.readouterr().out.replace("of the program", "")


def test_profiles_that_extrap_saved_keep_their_repetitions(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "heat")
    real_extrap.read("cube", folder, tmp_path / "heat.extra-p")
    ours, saved = read_experiment(folder), read_experiment(tmp_path / "heat.extra-p")
    assert saved.points.tolist() == ours.points.tolist()
    order = [[saved.tree.label(node) for node in range(3)].index(ours.tree.label(node)) for node in range(3)]
    for metric, values in ours.values.items():
        # Extra-P takes repetitions in the order of the file system.
        kept = np.sort(saved.values[metric][order], axis=2)
        assert kept == pytest.approx(np.sort(values, axis=2), rel=1e-12)


def test_ranks_and_threads_combine(tmp_path: Path) -> None:
    metrics: dict[str, CubeMetric] = {
        "time": ("DOUBLE", "EXCLUSIVE", [[1.0, 2, 4], [0, 0, 0], [0, 0, 0]]),
        "max_time": ("MAXDOUBLE", "EXCLUSIVE", [[1.0, 2, 4], [0, 0, 0], [0, 0, 0]]),
        "min_time": ("MINDOUBLE", "EXCLUSIVE", [[1.0, 2, 4], [0, 0, 0], [0, 0, 0]]),
        "rate": ("RATE", "INCLUSIVE", [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]),
    }
    write_cube(tmp_path / "x.p4" / "profile.cubex", metrics, threads=(2, 1))
    found = {over: read_experiment(tmp_path, over) for over in ("mean", "max", "sum")}
    assert [found[over].values["time"][0, 0, 0] for over in ("mean", "max", "sum")] == [3.5, 4, 7]
    assert found["sum"].values["max_time"][0, 0, 0] == 4
    assert found["mean"].metric("max_time").over_locations == "max"
    assert set(found["mean"].metrics) == {"time", "max_time"}
    assert any("min_time is left out" in note for note in found["mean"].notes)
    assert any("rate is left out" in note for note in found["mean"].notes)


def test_a_call_path_that_a_profile_does_not_have_is_zero(tmp_path: Path) -> None:
    one = {"visits": ("UINT64", "EXCLUSIVE", [[1, 1], [2, 2]])}
    write_cube(tmp_path / "x.p1" / "profile.cubex", one, send=False)
    write_cube(tmp_path / "x.p2" / "profile.cubex", {"visits": ("UINT64", "EXCLUSIVE", [[1, 1], [2, 2], [3, 3]])})
    assert read_experiment(tmp_path).values["visits"][:, :, 0].tolist() == [[1, 1], [2, 2], [0, 3]]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mm.x4.y10.r1", ({"x": 4, "y": 10}, 1)),
        ("mm.x4y10", ({"x": 4, "y": 10}, 1)),
        ("mm.x0,5.r12", ({"x": 0.5}, 12)),
        ("mm.x1.5.ranks4.r2", ({"x": 1.5, "ranks": 4}, 2)),
        ("mm.p=4.n=1.5", ({"p": 4, "n": 1.5}, 1)),
        ("mm.tile_x-y4", ({"tile_x-y": 4}, 1)),
        ("x4y1,5.r2", ({"x": 4, "y": 1.5}, 2)),
        ("x4y10", ({"x": 4, "y": 10}, 1)),
        ("mm.x2.5,y21,5,z1.15.r1", ({"x": 2.5, "y": 21.5, "z": 1.15}, 1)),
        ("t.X12.postfix.r3", ({"X": 12}, 3)),
        ("t.X12.Y3.a-b", ({"X": 12, "Y": 3}, 1)),
        ("scorep-20240101_1200_99", None),
        ("scorep-20240101", None),
        ("mm", None),
        ("mm.x.r1", None),
        ("mm.x.y.r1", None),
        ("mm.4x", None),
        ("mm.x4.x5", None),
    ],
)
def test_names_of_folders(name: str, expected: tuple[dict[str, float], int] | None, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "profile.cubex").write_bytes(b"")
    if expected is None:
        with pytest.raises(FormatError, match=re.escape("name the folders like Extra-P, prefix.p4.n100.r1")):
            find_profiles(tmp_path)
    else:
        (profile,) = find_profiles(tmp_path)
        assert (profile.parameters, profile.repetition) == expected


def test_parameters_that_never_change_are_left_out(tmp_path: Path) -> None:
    for name in ("x.p2.n10", "x.p4.n10", "x.p4.n10.r2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "profile.cubex").write_bytes(b"")
    assert [profile.parameters for profile in find_profiles(tmp_path)] == [{"p": 2}, {"p": 4}, {"p": 4}]
    (tmp_path / "x.n10").mkdir()
    (tmp_path / "x.n10" / "profile.cubex").write_bytes(b"")
    with pytest.raises(FormatError, match="name the same ones in the same order"):
        find_profiles(tmp_path)


def test_one_profile_per_folder(tmp_path: Path) -> None:
    folder = tmp_path / "x.p2"
    folder.mkdir()
    for name in ("scout.cubex", "summary.cubex"):
        (folder / name).write_bytes(b"")
    with pytest.raises(FormatError, match="several Cube files"):
        find_profiles(tmp_path)
    (folder / "profile.cubex").write_bytes(b"")
    assert find_profiles(tmp_path)[0].path.name == "profile.cubex"


def test_files_that_differ_in_a_number_are_repetitions(tmp_path: Path) -> None:
    for name, time in (("profile2.cubex", 3.0), ("profile10.cubex", 5.0)):
        write_cube(tmp_path / "x.p2" / name, {"time": ("DOUBLE", "EXCLUSIVE", [[time, time], [1, 1], [1, 1]])})
    assert [profile.path.name for profile in find_profiles(tmp_path)] == ["profile2.cubex", "profile10.cubex"]
    assert read_experiment(tmp_path).values["time"][0].tolist() == [[3.0, 5.0]]


@pytest.mark.parametrize(
    ("folder", "parameters"),
    [("scorep-20261130_1200_123", {"p": 2}), ("app.n10.r3", {"n": 10}), ("x4y10.r1", {"x": 4, "y": 10})],
)
def test_one_profile_is_an_experiment(tmp_path: Path, folder: str, parameters: dict[str, float]) -> None:
    path = tmp_path / folder / "profile.cubex"
    write_cube(path, {"time": ("DOUBLE", "EXCLUSIVE", [[1, 3], [1, 1], [1, 1]])})
    (path.parent / "scorep.cfg").write_text("SCOREP_ENABLE_PROFILING=true")
    for source in (path, path.parent):
        experiment = read_experiment(source)
        assert dict(zip(experiment.parameters, experiment.points[0], strict=True)) == parameters
        assert experiment.values["time"][0].tolist() == [[2.0]]


def test_repetitions_in_one_folder_without_parameters(tmp_path: Path) -> None:
    for number in (1, 2):
        metrics = {"time": ("DOUBLE", "EXCLUSIVE", [[number, number], [1, 1], [1, 1]])}
        write_cube(tmp_path / "mine" / f"profile{number}.cubex", metrics)
    experiment = read_experiment(tmp_path / "mine")
    assert experiment.values["time"][0].tolist() == [[1.0, 2.0]]


def test_bad_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_folder_of_others(tmp_path)
    with pytest.raises(FormatError, match="contains no folders with Cube profiles"):
        read_experiment(tmp_path)
    path = tmp_path / "x.p2" / "profile.cubex"
    path.parent.mkdir()
    for content in (b"", b"no tar", bytes(2048)):
        path.write_bytes(content)
        with pytest.raises(FormatError, match="cannot be read as a Cube profile") as caught:
            read_experiment(tmp_path)
        assert caught.value.source == str(path)
    assert is_folder_of_others(tmp_path)
    assert is_folder_of_others(path.parent)
    with pytest.raises(FormatError, match="cannot be read as a Cube profile"):
        read_experiment(path.parent)
    monkeypatch.setitem(sys.modules, "pycubexr", None)
    with pytest.raises(EnvironmentProblem, match="pip install pycubexr"):
        read_experiment(tmp_path)


def test_one_rank_reads_with_the_same_statistics(tmp_path: Path) -> None:
    for p in (1, 2):
        metrics = {"time": ("DOUBLE", "INCLUSIVE", [[8.5 * p], [2.0], [0.5]])}
        write_cube(tmp_path / f"x.p{p}" / "profile.cubex", metrics, threads=(1,))
    same(read_experiment(tmp_path), real_extrap.read("cube", tmp_path))


def test_profiles_of_score_p_are_the_measured_input_of_a_selection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """sweep takes 1 ms · n in n visits, without a build by Quipu; at 10⁶ visits of 10 ns, measuring it is too much."""
    monkeypatch.chdir(tmp_path)
    for name, visits, seconds in (("few", 1, 1e-3), ("many", 100_000, 1e-3)):
        for n in (10, 20, 30, 40, 50):
            metrics: dict[str, CubeMetric] = {
                "visits": ("UINT64", "EXCLUSIVE", [[1, 1], [n * visits] * 2, [2, 2]]),
                "time": ("DOUBLE", "EXCLUSIVE", [[0.01] * 2, [n * seconds] * 2, [0.002] * 2]),
            }
            write_cube(tmp_path / name / f"heat.n{n}.r1" / "profile.cubex", metrics)
        arguments = ("filter", name, "--at", "n=100", "--overhead", "0.05", "--tool", "scorep", "-o", f"{name}.filter")
        assert run_command_line([*arguments, "--compiler", "gcc"]) == 0
    assert "predicted overhead" in capsys.readouterr().err
    kept = {name: (tmp_path / f"{name}.filter").read_text().split("MANGLED\n")[1].split() for name in ("few", "many")}
    assert kept["few"] == ["_Z5sweepi", "main", "SCOREP_REGION_NAMES_END"]
    assert kept["many"] == ["main", "SCOREP_REGION_NAMES_END"]
