# SPDX-License-Identifier: Apache-2.0
"""Ranks that are sampled: they end as without samples, and processor time goes to the call path that had it.

Samples by events of the kernel, and by POSIX timers where those are forbidden.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from measured import PROGRAMS, launch
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.installation import native_file
from quipu.agent.launch.raw_folder import RawFolder, read_raw_folder
from quipu.agent.merge.run import combine

RANKS = 2
SAMPLED = {"QUIPU_SAMPLE": "1000"}
WORK = ("main", "work")


@pytest.fixture(scope="module")
def instrumented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("instrumented") / "sampled"
    subprocess.run([native_file("quipu-mpicc"), "-O1", PROGRAMS / "sampled.c", "-o", program], check=True)
    return program


@pytest.fixture(scope="module")
def without_events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("forbidden") / "without_events"
    source = PROGRAMS.parents[1] / "native" / "programs" / "without_events.c"
    subprocess.run(["clang-19", "-O1", source, "-o", program], check=True)
    return program


def names(run: RunArchive, path: int) -> tuple[str, ...]:
    return tuple(str(name) for name in run.tree.key(path))


def visits(run: RunArchive) -> Counter[tuple[str, ...]]:
    return Counter({names(run, path): int(run.statistics["visits"].sum[path]) for path in range(len(run.tree))})


@pytest.mark.parametrize("how", ["", "1"], ids=["from profiles", "reduced"])
@pytest.mark.parametrize("timers", [False, True], ids=["events", "timers"])
def test_ranks_are_sampled(
    instrumented: Path, without_events: Path, library: Path, tmp_path: Path, timers: bool, how: str
) -> None:
    def raw_of(name: str, samples: dict[str, str]) -> RawFolder:
        folder = tmp_path / name
        folder.mkdir()
        settings = {"LD_PRELOAD": str(library), "QUIPU_DIR": str(folder), "QUIPU_MPI_REDUCE": how, **samples}
        starter = [str(without_events)] if timers else []
        launch([*starter, str(instrumented)], RANKS, folder, settings)
        return read_raw_folder(folder)

    raw, plain = raw_of("sampled", SAMPLED), combine(raw_of("plain", {}), RunMetadata(exit_code=0))
    assert len(raw.profiles) == RANKS
    for profile in raw.profiles:
        assert profile.attributes["samples_lost"] == "0"
        assert "sampling_problem" not in profile.attributes
        assert not timers or profile.attributes["sampled_by"] == "timer"
    run = combine(raw, RunMetadata(exit_code=0))
    assert run.metadata.complete
    assert visits(run) == visits(plain)
    assert "task_clock" not in plain.statistics
    (work,) = [path for path in range(len(run.tree)) if names(run, path)[-2:] == WORK]
    clock = run.statistics["task_clock"]
    assert clock.min[work] >= 0.9 * 0.06e9
    assert clock.max[work] >= 0.9 * 0.12e9
    assert clock.max_rank[work] == RANKS - 1
    assert run.statistics["samples"].sum[work] >= 1
    merged = combine(replace(raw, reduced=()), RunMetadata(exit_code=0))
    for name in ("samples", "task_clock"):
        assert merged.statistics[name].sum.sum() == run.statistics[name].sum.sum()
