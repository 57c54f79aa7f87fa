# SPDX-License-Identifier: Apache-2.0
"""Databases of HPCToolkit, read through Hatchet: they are written here as hpcprof-mpi writes them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import RegionKind
from quipu.report.formats.detect import is_folder_of_others, read_experiment

XML = """<?xml version="1.0"?>
<HPCToolkitExperiment version="2.0">
<Header n="app"><Info/></Header>
<SecCallPathProfile i="0" n="app">
<SecHeader>
  <MetricTable>
    <Metric i="0" n="CPUTIME (usec):Sum (I)" v="final" t="inclusive"></Metric>
    <Metric i="1" n="CPUTIME (usec):Sum (E)" v="final" t="exclusive"></Metric>
  </MetricTable>
  <MetricDBTable>
    <MetricDB i="0" n="CPUTIME (usec) (I)" t="inclusive" db-glob="*.metric-db" db-id="0" db-num-metrics="2"
              db-header-sz="32"/>
    <MetricDB i="1" n="CPUTIME (usec) (E)" t="exclusive" db-glob="*.metric-db" db-id="1" db-num-metrics="2"
              db-header-sz="32"/>
  </MetricDBTable>
  <LoadModuleTable><LoadModule i="1" n="app"/></LoadModuleTable>
  <FileTable><File i="1" n="app.c"/></FileTable>
  <ProcedureTable>
    <Procedure i="1" n="main"/><Procedure i="2" n="solve"/><Procedure i="3" n="MPI_Send"/>
  </ProcedureTable>
</SecHeader>
<SecCallPathProfileData>
<PF i="1" s="1" l="3" lm="1" f="1" n="1">
  <C i="2" s="2" l="5"><PF i="3" s="3" l="10" lm="1" f="1" n="2">
    <L i="4" s="4" l="11" f="1"><S i="5" s="5" l="12"/></L>
    <C i="6" s="6" l="14"><PF i="7" s="7" l="1" lm="1" f="1" n="3"><S i="8" s="8" l="1"/></PF></C>
  </PF></C>
  <C i="9" s="9" l="6"><PF i="10" s="10" l="10" lm="1" f="1" n="2"><S i="11" s="11" l="12"/></PF></C>
</PF>
</SecCallPathProfileData>
</SecCallPathProfile>
</HPCToolkitExperiment>
"""
# Inclusive microseconds of every node: main calls solve from two lines, the first of which sends.
INCLUSIVE = {1: 10e6, 2: 6e6, 3: 6e6, 4: 4e6, 5: 4e6, 6: 1e6, 7: 1e6, 8: 1e6, 9: 2e6, 10: 2e6, 11: 2e6}
EXCLUSIVE = {5: 4e6, 8: 1e6, 11: 2e6}


def write_database(folder: Path, ranks: int, factor: float = 1.0) -> Path:
    folder.mkdir(parents=True)
    (folder / "experiment.xml").write_text(XML, encoding="utf-8")
    for rank in range(ranks):
        body = b"".join(
            struct.pack(">dd", (rank + 1) * factor * INCLUSIVE[at], (rank + 1) * factor * EXCLUSIVE.get(at, 0.0))
            for at in range(1, 12)
        )
        head = b"HPCPROF-metricdb__" + b"00.10b" + struct.pack(">II", 11, 2)
        (folder / f"1.app-{rank:06}-000-a8c0-{rank}-0.metric-db").write_bytes(head + body)
    return folder


@pytest.mark.parametrize(("over", "factor"), [("mean", 1.5), ("max", 2.0), ("sum", 3.0)])
def test_a_database_is_exclusive_by_function(tmp_path: Path, over: str, factor: float) -> None:
    folder = write_database(tmp_path / "hpctoolkit-app-database", 2)
    assert is_folder_of_others(folder)
    read = read_experiment(folder, over)  # type: ignore[arg-type]
    labels = [read.tree.label(node) for node in range(len(read.tree))]
    assert labels == ["main", "main->solve", "main->solve->MPI_Send"]
    assert read.values["time"][:, 0, 0].tolist() == pytest.approx([2.0 * factor, 7.0 * factor, 1.0 * factor])
    assert (read.metric("time").unit, read.tree.region_of(2).kind) == ("s", RegionKind.MPI)
    assert (read.parameters, read.points.tolist()) == (("p",), [[2.0]])


def test_databases_with_parameters_in_their_names_are_an_experiment(tmp_path: Path) -> None:
    for p in (1, 2):
        for n in (10, 20):
            write_database(tmp_path / f"app.p{p}.n{n}.r1", p, n / 10)
    read = read_experiment(tmp_path)
    assert read.parameters == ("p", "n")
    assert read.values["time"][2, :, 0].tolist() == pytest.approx([1.0, 2.0, 1.5, 3.0])


def test_a_database_without_the_values_of_ranks(tmp_path: Path) -> None:
    folder = write_database(tmp_path / "app", 1)
    for path in folder.glob("*.metric-db"):
        path.unlink()
    with pytest.raises(FormatError, match=r"has no metric-db files.*hpcprof-mpi"):
        read_experiment(folder)


def test_damage_is_one_error(tmp_path: Path) -> None:
    folder = write_database(tmp_path / "broken", 1)
    (folder / "experiment.xml").write_text(XML[:900], encoding="utf-8")
    with pytest.raises(FormatError, match="cannot be read as a database of HPCToolkit"):
        read_experiment(folder)


def test_a_large_database_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_database(tmp_path / "large", 1)
    (folder / "experiment.xml").write_text(XML + " " * 40_000, encoding="utf-8")
    monkeypatch.setenv("QUIPU_READ_MIB", "1")
    with pytest.raises(FormatError, match="QUIPU_READ_MIB"):
        read_experiment(folder)


def test_a_file_that_claims_more_nodes_than_it_has_is_refused(tmp_path: Path) -> None:
    folder = write_database(tmp_path / "claims", 1)
    (path,) = folder.glob("*.metric-db")
    path.write_bytes(path.read_bytes()[:24] + struct.pack(">II", 1 << 30, 2) + path.read_bytes()[32:])
    with pytest.raises(FormatError, match="is cut off"):
        read_experiment(folder)
