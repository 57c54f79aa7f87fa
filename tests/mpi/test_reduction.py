# SPDX-License-Identifier: Apache-2.0
"""The reduction in MPI_Finalize: the same archive as from the profiles of the processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured import PROGRAMS, launch
from quipu.agent.archive.class_tables import read_source
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive
from quipu.agent.launch.raw_folder import RawFolder, read_raw_folder
from quipu.agent.merge.counted_run import CountedRun
from quipu.agent.merge.ranks import assign_ranks
from quipu.agent.merge.reduced import read_reduced
from quipu.agent.merge.reduced_run import run_of
from quipu.agent.merge.run import combine, merge_run

Counts = dict[tuple[tuple[str, ...], str], tuple[float, ...]]


@pytest.fixture
def reduced_run(program: Callable[[str], Path], library: Path, tmp_path: Path) -> Callable[..., RawFolder]:
    def run(how: str, ranks: int, columns: int) -> RawFolder:
        settings = {"LD_PRELOAD": str(library), "QUIPU_DIR": str(tmp_path), "QUIPU_MPI_REDUCE": "1"}
        settings["QUIPU_RANK_COLUMNS"] = str(columns)
        launch([str(program("reduction")), how], ranks, tmp_path, settings)
        return read_raw_folder(tmp_path)

    return run


def merged(raw: RawFolder, columns: int) -> RunArchive:
    """Return the run as merged from the profiles."""
    return combine(replace(raw, reduced=()), RunMetadata(exit_code=0), column_ranks=columns)


def reduced(raw: RawFolder) -> CountedRun | None:
    """Return the run as reduced, None if that is not whole."""
    return run_of(read_reduced(raw.reduced[0]), assign_ranks(raw.profiles, raw.rank_files))


def counts(found: CountedRun | RunArchive) -> Counts:
    """Return the exact numbers of all call paths."""
    fields = ("ranks", "sum", "min", "max", "mean", "min_rank", "max_rank")
    result = {}
    for name, statistics in found.statistics.items():
        if name in ("time", "thread_time", "wait_time", "overhead"):
            continue
        quantiles = [statistics.quantile(q) for q in (0.0, 0.25, 0.5, 1.0)]
        for path in range(len(found.tree)):
            row = [float(getattr(statistics, field)[path]) for field in fields]
            result[found.tree.key(path), name] = (*row, *(float(entry[path]) for entry in quantiles))
    return result


@pytest.mark.parametrize(("ranks", "columns"), [(2, 256), (5, 256), (5, 4), (2, 0)])
def test_reduced_and_merged_are_the_same(reduced_run: Callable[..., RawFolder], ranks: int, columns: int) -> None:
    raw = reduced_run("plain", ranks, columns)
    found, archive = reduced(raw), merged(raw, columns)
    assert found is not None
    assert archive.metadata.complete
    assert (found.values is not None) == (archive.values is not None) == (ranks <= columns)
    assert counts(found) == counts(archive)
    late = counts(found)[("MPI_Finalized",), "visits"]
    assert late[:4] == (ranks, ranks * (ranks + 1) / 2, 1, ranks)
    places = {archive.tree.key(path): path for path in range(len(archive.tree))}
    order = [places[found.tree.key(path)] for path in range(len(found.tree))]
    for name in ("time", "thread_time", "wait_time"):
        times = archive.statistics[name].sum[order]
        np.testing.assert_allclose(found.statistics[name].sum, times, rtol=1e-3, atol=1e-6 * ranks)
    if found.values is not None and archive.values is not None:
        assert found.values.metrics["visits"].sum() == archive.values.metrics["visits"].sum()
        assert set(found.values.thread.tolist()) == {0, 1}


def rows(archive: RunArchive) -> dict[tuple[object, ...], dict[str, float]]:
    """Return the values of an archive by call path, rank and thread."""
    found, keys = archive.values, [archive.tree.key(path) for path in range(len(archive.tree))]
    assert found is not None
    places = zip(found.callpath.tolist(), found.rank.tolist(), found.thread.tolist(), strict=True)
    return {
        (keys[path], rank, thread): {name: float(column[row]) for name, column in found.metrics.items()}
        for row, (path, rank, thread) in enumerate(places)
    }


def source_lines(archive: RunArchive) -> dict[tuple[object, ...], list[int]]:
    source = read_source(archive.path, archive.metadata, archive.tree)
    assert source is not None
    places = zip(source.callpath.tolist(), source.line.tolist(), strict=True)
    return {
        (archive.tree.key(path), source.lines[line]): [int(column[row]) for column in source.metrics.values()]
        for row, (path, line) in enumerate(places)
    }


@pytest.fixture(scope="module")
def instrumented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program with counted loops, a function without a hook, and source lines."""
    program = tmp_path_factory.mktemp("instrumented") / "reduction"
    compiler = Path(sys.executable).with_name("quipu-mpicc")
    source = PROGRAMS / "reduction.c"
    command: list[str | Path] = [compiler, "-g", "-O1", "-pthread", source, "-o", program]
    subprocess.run(command, check=True)
    return program


def test_a_rank_that_empties_its_environment_takes_part(reduced_run: Callable[..., RawFolder]) -> None:
    """Without it, the other ranks would wait for it in MPI_Finalize."""
    raw = reduced_run("empty", 3, 256)
    found = reduced(raw)
    assert found is not None
    assert counts(found) == counts(merged(raw, 256))


@pytest.mark.parametrize(("how", "columns", "clock"), [("again", 256, ""), ("plain", 256, "none"), ("plain", 0, "")])
def test_both_ways_give_the_same_archive(
    instrumented: Path, library: Path, tmp_path: Path, how: str, columns: int, clock: str
) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    settings = {"LD_PRELOAD": str(library), "QUIPU_DIR": str(raw), "QUIPU_MPI_REDUCE": "1"}
    settings |= {"QUIPU_RANK_COLUMNS": str(columns), "QUIPU_MPI_WAIT": "sample"} | (
        {"QUIPU_CLOCK": clock} if clock else {}
    )
    launch([str(instrumented), how], 3, raw, settings)
    found = read_raw_folder(raw)
    assert reduced(found) is not None

    def archive(name: str) -> RunArchive:
        path = merge_run(raw, tmp_path / name, RunMetadata({"p": 3}, exit_code=0), True, column_ranks=columns).path
        return read_archive(path)

    short_cut = archive("reduced")
    found.reduced[0].unlink()
    whole = archive("merged")
    assert short_cut.metadata.complete
    assert short_cut.metadata.metrics == whole.metadata.metrics
    assert ("time" in whole.statistics) == (not clock)
    assert {"overhead", "blocks", "wait_time"} - ({"wait_time"} if clock else set()) <= set(whole.statistics)
    assert (short_cut.values is not None) == (whole.values is not None) == (columns > 0)
    if whole.values is not None:
        ours, theirs = rows(short_cut), rows(whole)
        assert ours.keys() == theirs.keys()
        for key, values in ours.items():  # counts to the last bit, times up to rounding
            assert values == pytest.approx(theirs[key], rel=1e-14, abs=0, nan_ok=True)
    else:
        assert counts(short_cut) == counts(whole)
    places = {short_cut.tree.key(path): path for path in range(len(short_cut.tree))}
    order = [places[whole.tree.key(path)] for path in range(len(whole.tree))]
    exact = 1e-12 if columns else 1e-3  # statistics are of the clock as it was known in MPI_Finalize
    for name in {"time", "thread_time", "wait_time", "overhead"} & whole.statistics.keys():
        for field in ("sum", "min", "max", "mean", "std"):
            mine, other = (getattr(entry.statistics[name], field) for entry in (short_cut, whole))
            bound = 1e-12 if name == "overhead" else exact
            np.testing.assert_allclose(mine[order], other, rtol=bound, atol=1e-6 * (bound > 1e-12))
    assert short_cut.metadata.overhead == pytest.approx(whole.metadata.overhead, rel=1e-9)
    assert source_lines(short_cut) == source_lines(whole)


@pytest.mark.parametrize("columns", [0, 256])
def test_an_archive_comes_from_the_reduction(reduced_run: Callable[..., RawFolder], columns: int) -> None:
    raw = reduced_run("plain", 3, columns)
    for profile in raw.profiles:
        profile.path.unlink()  # their call paths are not read any more
    archive = combine(raw, RunMetadata(exit_code=0), column_ranks=columns)
    assert archive.metadata.complete
    assert archive.metadata.rank_columns == (columns > 0)
    assert "overhead" in archive.statistics
    assert counts(archive) == counts(reduced(raw) or archive)


def test_a_call_path_that_goes_on_after_the_statistics_is_read_from_the_profiles(
    reduced_run: Callable[..., RawFolder],
) -> None:
    raw = reduced_run("again", 3, 0)
    assert reduced(raw) is None
    archive = combine(raw, RunMetadata(exit_code=0), column_ranks=0)
    assert counts(archive)[("MPI_Get_version",), "visits"][1] == 6


def test_a_call_path_that_goes_on_after_columns_is_added(reduced_run: Callable[..., RawFolder]) -> None:
    found = reduced(reduced_run("again", 3, 256))
    assert found is not None
    assert counts(found)[("MPI_Get_version",), "visits"][1] == 6


def test_a_rank_that_does_not_come_to_its_end_is_read_from_its_profile(reduced_run: Callable[..., RawFolder]) -> None:
    raw = reduced_run("quit", 3, 0)
    assert reduced(raw) is None
    archive = combine(raw, RunMetadata(exit_code=0), column_ranks=0)
    assert counts(archive) == counts(merged(raw, 0))
    assert counts(archive)[("MPI_Finalized",), "visits"][1] == 6


def test_a_damaged_reduction_is_told_and_not_used(reduced_run: Callable[..., RawFolder]) -> None:
    raw = reduced_run("plain", 2, 0)
    content = bytearray(raw.reduced[0].read_bytes())
    content[len(content) // 2] ^= 4
    raw.reduced[0].write_bytes(content)
    archive = combine(raw, RunMetadata(exit_code=0), column_ranks=0)
    assert counts(archive) == counts(merged(raw, 0))
    assert "a checksum is wrong; the profiles of the processes were merged instead" in archive.metadata.problems[0]
    assert not archive.metadata.partial
