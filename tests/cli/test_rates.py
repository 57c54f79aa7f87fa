# SPDX-License-Identifier: Apache-2.0
"""`quipu rates`: which runs of an experiment rates are fitted to."""

from __future__ import annotations

from pathlib import Path

from quipu.agent.cli.rates import _used
from quipu.agent.merge.experiment import find_runs, load_experiment

from .runs import write_counts, write_run


def used(folder: Path) -> tuple[list[tuple[float, ...]], bool]:
    experiment = load_experiment(folder).of_time
    flags, several = _used(experiment, find_runs(folder))
    return [tuple(point) for point in experiment.points[flags].tolist()], several


def test_runs_of_one_rank_else_those_with_a_processor_for_each(tmp_path: Path) -> None:
    for p, processors in ((2, 4), (4, 4), (8, 4)):
        nodes = ({"host": "node", "cpus": processors, "ranks": [{} for _ in range(p)]},)
        write_run(tmp_path, p, 32, nodes=nodes)
    assert used(tmp_path) == ([(2, 32), (4, 32)], True)
    write_run(tmp_path, 1, 32, partial=True)
    assert used(tmp_path) == ([(2, 32), (4, 32)], True)
    write_run(tmp_path, 1, 64)
    assert used(tmp_path) == ([(1, 64)], False)
    write_counts(tmp_path, 1, 96)  # keeps no time
    assert used(tmp_path) == ([(1, 64)], False)
