# SPDX-License-Identifier: Apache-2.0
"""Ways of using files that do not scale: planted ones are found, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region, RegionKind
from quipu.modeling.file_use import FileFinding, FileUse, file_uses
from quipu.modeling.metrics import FURTHER, METRICS

RANKS = np.array([1.0, 2.0, 4.0, 8.0])
MAIN, GROUP = 0, 1


def experiment(
    name: str,
    over: str,
    writes: FloatArray,
    written: FloatArray,
    opened: FloatArray,
    kind: RegionKind = RegionKind.FILE,
) -> Experiment:
    """Return measurements of a program whose main uses one group of files; values per number of ranks."""
    regions = (Region("main", "main", RegionKind.FUNCTION), Region(f"file:{name}", name, kind))
    tree = CallTree(regions, np.array([MAIN, GROUP]), np.array([-1, MAIN]))
    values = {
        metric: np.stack([np.zeros_like(RANKS), np.broadcast_to(of_group, RANKS.shape)])[:, :, None]
        for metric, of_group in (("file_writes", writes), ("file_bytes_written", written), ("files_opened", opened))
    }
    values["visits"] = np.ones_like(values["file_writes"])
    metrics = {name: {**METRICS, **FURTHER}[name] for name in values}
    return Experiment("files", ("p",), RANKS[:, None], tree, metrics, values, over_ranks=over)  # type: ignore[arg-type]


Values = tuple[FloatArray, FloatArray, FloatArray]


def found(name: str, mean: Values, largest: Values, kind: RegionKind = RegionKind.FILE) -> list[FileFinding]:
    one, most = experiment(name, "mean", *mean, kind), experiment(name, "max", *largest, kind)
    return list(file_uses(one, most, analyze(one), "p", {"p": 64.0}))


ONE = np.ones(4)


def test_small_writes_are_found_with_their_size() -> None:
    values = (500 * ONE, 8000 * ONE, ONE)
    (finding,) = found("log.txt", values, values)
    assert (finding.use, finding.group, finding.size) == (FileUse.SMALL_WRITES, "log.txt", 16.0)
    assert (finding.measured, finding.at_target) == (500, pytest.approx(500))


@pytest.mark.parametrize(("writes", "size"), [(50, 16), (500, 8192)])
def test_few_or_large_writes_are_none(writes: int, size: int) -> None:
    values = (writes * ONE, writes * size * ONE, ONE)
    assert found("log.txt", values, values) == []


def test_one_rank_that_writes_for_all_is_found() -> None:
    written = 1e6 * RANKS
    mean, largest = (ONE / RANKS, written / RANKS, ONE / RANKS), (ONE, written, ONE)
    (finding,) = found("field.bin", mean, largest)
    assert finding.use is FileUse.ONE_WRITER
    assert finding.measured == pytest.approx(8e6)
    assert finding.at_target == pytest.approx(64e6, rel=0.01)


def test_ranks_that_share_the_work_are_not() -> None:
    values = (ONE, 1e6 * ONE, ONE)
    assert found("field.bin", values, values) == []


def test_a_file_per_rank_is_found_by_the_number_in_its_name() -> None:
    values = (ONE, 1e6 * ONE, ONE)
    (finding,) = found("part-#.bin", values, values)
    assert finding.use is FileUse.FILE_PER_RANK
    assert (finding.measured, finding.at_target) == (8, pytest.approx(64))
    assert np.isnan(finding.size)


def test_a_function_is_no_group_of_files() -> None:
    values = (500 * ONE, 8000 * ONE, ONE)
    assert found("part-#.bin", values, values, RegionKind.FUNCTION) == []


def test_nothing_is_said_where_files_were_not_counted() -> None:
    values = (500 * ONE, 8000 * ONE, ONE)
    one = experiment("log.txt", "mean", *values)
    without = replace(one, values={"visits": one.values["visits"]}, metrics={"visits": one.metrics["visits"]})
    assert file_uses(without, without, analyze(without), "p", {"p": 64.0}) == ()


def test_the_largest_problem_is_looked_at() -> None:
    """Small writes of the largest problem are found, also if a smaller problem ran with as many ranks."""
    one = experiment("log.txt", "mean", 1000 * ONE, 64_000 * ONE, ONE)
    points = np.array([(p, n) for p in RANKS for n in (10.0, 20.0)])
    values = {name: np.repeat(own, 2, axis=1) for name, own in one.values.items()}
    values["file_writes"] = values["file_writes"] * (points[:, 1] == 20.0)[:, None]
    two = replace(one, parameters=("p", "n"), points=points, values=values)
    (finding,) = file_uses(two, replace(two, over_ranks="max"), analyze(two), "p", {"p": 64.0, "n": 20.0})
    assert finding.use is FileUse.SMALL_WRITES
    assert finding.measured == 1000
