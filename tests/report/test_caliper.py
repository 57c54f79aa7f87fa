# SPDX-License-Identifier: Apache-2.0
"""Files of Caliper: what is written is read by caliper-reader, Hatchet and Thicket, and what Caliper writes by us."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from peers import needs
from quipu.agent.cli.export_runs import export_runs
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region, RegionKind
from quipu.modeling.metrics import METRICS
from quipu.report.formats.detect import is_folder_of_others, read_experiment
from quipu.report.formats.stacks.caliper import caliper_text
from quipu.report.formats.stacks.weighted import Sample

# As the recorder of Caliper 2 writes it with aggregation over ranks, but for fewer columns.
HEAD = """__rec=node,id=12,attr=10,data=64,parent=3
__rec=node,id=14,attr=8,data=attribute.unit,parent=12
__rec=node,id=20,attr=14,data=sec,parent=5
__rec=node,id=21,attr=10,data=65,parent=20
__rec=node,id=22,attr=8,data=avg#inclusive#sum#time.duration,parent=21
__rec=node,id=23,attr=8,data=max#inclusive#sum#time.duration,parent=21
__rec=node,id=24,attr=8,data=min#inclusive#sum#time.duration,parent=21
__rec=node,id=31,attr=10,data=276,parent=3
__rec=node,id=32,attr=8,data=region,parent=31
__rec=node,id=40,attr=10,data=577,parent=2
__rec=node,id=41,attr=8,data=mpi.world.size,parent=40
"""
BODY = """__rec=node,id=50,attr=32,data=main
__rec=ctx,ref=50,attr=22=23=24,data={0}=4.0=1.0
__rec=node,id=51,attr=32,data=solve,parent=50
__rec=ctx,ref=51,attr=22=23=24,data=1.5=2.0=1.0
__rec=node,id=52,attr=32,data=MPI_Allreduce,parent=51
__rec=ctx,ref=52,attr=22=23=24,data=0.5=1.5=0.25
__rec=globals,attr=41,data={1}
"""
HOSTILE = ["a,b=c\\d", "line\nbreak", "-> \u2192 \u00e9", "a", "a", " spaces "]


pytestmark = needs("caliper-reader")


def planted(names: list[str]) -> Experiment:
    """Return an experiment of two parameters and two repetitions: one run and one value are missing."""
    regions = (Region("main", "main"), *(Region(f"f{place}", name) for place, name in enumerate(names)))
    tree = CallTree(regions, np.arange(len(regions)), np.array([-1] + [0] * len(names)))
    points = np.array([[1.0, 0.5], [2.0, 0.5], [4.0, 0.1]])
    values = np.random.default_rng(7).uniform(0.0, 3.0, (len(regions), 3, 2))
    values[1] = 0.0
    values[:, 1, 1] = np.nan
    values[-1, 0, 0] = np.nan
    metrics = {name: METRICS[name] for name in ("time", "visits", "blocks")} | {"own": Metric("own", "B")}
    return Experiment("planted", ("p", "size"), points, tree, metrics, dict.fromkeys(metrics, values))


def exported(experiment: Experiment, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("quipu.agent.cli.export_runs.load", lambda source, over_ranks: experiment)
    export_runs(Path("planted"), folder, "mean", force=False)
    return folder


def test_an_experiment_comes_back_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = planted(HOSTILE)
    folder = exported(written, tmp_path / "runs", monkeypatch)
    assert len(list(folder.glob("*.cali"))) == 5
    read = read_experiment(folder)
    assert is_folder_of_others(folder)
    assert read.parameters == written.parameters
    np.testing.assert_array_equal(read.points, written.points)
    assert len(read.tree) == len(written.tree)
    for name, values in written.values.items():
        np.testing.assert_array_equal(read.values[name], values)
        assert read.metrics[name].unit == written.metrics[name].unit
    assert [region.name for region in read.tree.regions] == [region.name for region in written.tree.regions]


def test_linker_names_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters need linker names; a display name of two regions has none."""
    written = planted(["solve::run(int)", "f()", "g()", "f()"])
    below = replace(written.tree, parent=np.array([-1, 0, 0, 1, 1]))  # f1 below main, f3 below f0: both f()
    read = read_experiment(exported(replace(written, tree=below), tmp_path / "runs", monkeypatch))
    found = {(region.name, region.display) for region in read.tree.regions}
    assert found == {("main", "main"), ("f0", "solve::run(int)"), ("f()", "f()"), ("f2", "g()")}
    for name, values in written.values.items():
        np.testing.assert_array_equal(read.values[name], values)


@pytest.mark.parametrize("names", ["[1]", '{"f()": 1}', "{"])
def test_linker_names_that_are_none(tmp_path: Path, names: str) -> None:
    samples = [Sample("one", {"time": np.array([1.0, 2.0])})]
    path = tmp_path / "one.cali"
    text = caliper_text(planted(["solve"]).tree, [METRICS["time"]], samples, {"quipu.title": "one"})
    path.write_text(text.replace('{"solve": "f0"}', names), encoding="utf-8")
    with pytest.raises(FormatError, match=r"one\.cali.*JSON"):
        read_experiment(path)


@needs("llnl-thicket")
def test_thicket_reads_all_runs_and_their_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        from thicket import Thicket

        files = sorted(map(str, exported(planted(["solve"]), tmp_path / "runs", monkeypatch).glob("*.cali")))
        thicket = Thicket.from_caliperreader(files, disable_tqdm=True)
    assert sorted(thicket.metadata["p"].astype(float)) == [1, 1, 2, 4, 4]
    assert sorted(thicket.metadata["size"].astype(float)) == [0.1, 0.1, 0.5, 0.5, 0.5]
    main = thicket.dataframe[thicket.dataframe["name"] == "main"]
    wanted = planted(["solve"]).values["time"][0]
    assert sorted(main["time"]) == pytest.approx(sorted(wanted[~np.isnan(wanted)]))


@needs("llnl-hatchet")
def test_hatchet_sees_ranks_apart_and_so_do_we(tmp_path: Path) -> None:
    import hatchet

    tree = planted(["solve"]).tree
    samples = [Sample(f"rank {rank}", {"time": np.array([1.0, 2.0 + rank])}) for rank in range(3)]
    path = tmp_path / "one.cali"
    path.write_text(caliper_text(tree, [METRICS["time"]], samples, {"quipu.title": "one"}), encoding="utf-8")
    table = hatchet.GraphFrame.from_caliperreader(str(path)).dataframe.reset_index()
    solve = table[table["name"] == "solve"].set_index("rank")["time"]
    assert [solve[rank] for rank in range(3)] == [2.0, 3.0, 4.0]
    for how, value in (("mean", 3.0), ("max", 4.0), ("sum", 9.0)):
        read = read_experiment(path, how)  # type: ignore[arg-type]
        assert read.values["time"][1, 0, 0] == value
        assert (read.parameters, read.points.tolist()) == (("p",), [[3.0]])


def test_no_text_steers_a_terminal() -> None:
    """Names of metrics, units and titles come from unknown files."""
    steering = "m\x1b[31m\x07\u202e"
    tree = CallTree((Region("main", "main"),), np.array([0]), np.array([-1]))
    metric = Metric(steering, steering)
    text = caliper_text(tree, [metric], [Sample("", {steering: np.array([1.0])})], {"quipu.title": steering})
    assert text.isascii() and all(character.isprintable() for character in text.replace("\n", ""))
    assert "m?[31m??" in text


def test_what_caliper_combined_over_ranks_is_made_exclusive(tmp_path: Path) -> None:
    path = tmp_path / "app.cali"
    path.write_text(HEAD + BODY.format(3.0, 8), encoding="utf-8")
    read = read_experiment(path)
    assert [read.tree.label(node) for node in range(3)] == ["main", "main->solve", "main->solve->MPI_Allreduce"]
    assert read.tree.region_of(2).kind is RegionKind.MPI
    assert read.values["time"][:, 0, 0].tolist() == [1.5, 1.0, 0.5]
    assert read.points.tolist() == [[8.0]]
    assert read_experiment(path, "max").values["time"][:, 0, 0].tolist() == [2.0, 0.5, 1.5]
    with pytest.raises(FormatError, match="combined over ranks by sum"):
        read_experiment(path, "sum")


def test_parameters_are_in_names_or_in_what_differs(tmp_path: Path) -> None:
    for number, ranks in enumerate((2, 4, 8)):
        (tmp_path / f"run{number}.cali").write_text(HEAD + BODY.format(3.0 + number, ranks), encoding="utf-8")
    read = read_experiment(tmp_path)
    assert (read.parameters, read.points.tolist()) == (("p",), [[2.0], [4.0], [8.0]])
    cut = "".join(line for line in (HEAD + BODY.format(3.0, 4)).splitlines(keepends=True) if "globals" not in line)
    (tmp_path / "run9.cali").write_text(cut, encoding="utf-8")
    with pytest.raises(FormatError, match=r"has no metadata of its run \(cut off\?\)") as caught:
        read_experiment(tmp_path)
    assert caught.value.source == str(tmp_path / "run9.cali")
    named = tmp_path / "named"
    named.mkdir()
    for n in (10, 20):
        for r in (1, 2):
            (named / f"app.p4.n{n}.r{r}.cali").write_text(HEAD + BODY.format(3.0, 4), encoding="utf-8")
    read = read_experiment(named)
    assert (read.parameters, read.values["time"].shape) == (("n",), (3, 2, 2))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id=51", "id=50", ":14: .*a node needs a unique id"),
        ("parent=50", "parent=51", ":14: .*a parent that comes before it"),
        ("data=1.5=", "data=nan=", "is not a finite number"),
        ("data=1.5=", "data=many=", "many"),
        ("__rec=globals,attr=41", "__rec=globals,attr=99", ":18: "),
        ("__rec=ctx,ref=51", "rec=51", '"__rec" missing'),
        ("data=main", "data=main\\", ":12: "),
    ],
)
def test_damage_is_one_error_with_its_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "app.cali"
    path.write_text((HEAD + BODY.format(3.0, 8)).replace(old, new), encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_experiment(path)


def test_deep_and_large_files_are_refused_before_they_cost_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep.cali"
    levels = "".join(f"__rec=node,id={at},attr=32,data=f,parent={at - 1}\n" for at in range(51, 1200))
    path.write_text(HEAD + BODY.splitlines()[0] + "\n" + levels, encoding="utf-8")
    with pytest.raises(FormatError, match="QUIPU_READ_DEPTH"):
        read_experiment(path)
    monkeypatch.setenv("QUIPU_READ_MIB", "1")
    flat = "".join(f"__rec=node,id={at},attr=32,data=f{at}\n" for at in range(51, 1200))
    path.write_text(HEAD + flat, encoding="utf-8")
    with pytest.raises(FormatError, match="QUIPU_READ_MIB"):
        read_experiment(path)
