# SPDX-License-Identifier: Apache-2.0
"""Declared experiments: order, resuming, locking, failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from heat_campaign import HEAT, declare
from patience import running_process
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.campaign import CampaignResult, Here, locked, run_campaign
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, RunInterrupted
from quipu.agent.campaign.task import Outcome, Silent, Task
from quipu.agent.launch.process import Ending
from quipu.agent.launch.raw_folder import write_launch
from quipu.agent.merge.experiment import find_runs
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import EnvironmentProblem, MeasurementError


class Bench:
    """Stands in for the launch: makes archives, or fails where it is told to."""

    def __init__(self, folder: Path, bad: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.bad = bad or {}
        self.commands: list[str] = []
        self.options: list[LaunchOptions] = []

    def __call__(
        self,
        command: Sequence[str],
        parameters: Mapping[str, float],
        repetition: int | None,
        directory: Path,
        options: LaunchOptions,
    ) -> RunArchive:
        text = " ".join(command)
        self.commands.append(text)
        self.options.append(options)
        how = next((how for part, how in self.bad.items() if part in text), "well")
        if how in ("SIGINT", "SIGTERM"):
            number = signal.Signals[how]
            raise RunInterrupted(f"stopped by {how}", Ending(-number, 1.0, stopped_by=number))
        if how == "fail":
            raise MeasurementError("the program is broken")
        raw = self.folder / "raw"
        raw.mkdir()
        unfinished = {"mpi_library": "MPICH"} if how == "partial" else {}
        rank_profile(0, 1, attributes={"host": "n1", "rank": "0", "ranks": "1", **unfinished}).write(raw)
        archive = merge_run(
            raw,
            directory,
            RunMetadata(dict(parameters), exit_code=0, command=tuple(command), environment_added=options.environment),
        )
        if how == "partial":
            raise RunFailed("numbers are missing", Ending(0, 1.0), archive)
        return archive


class Watcher(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.names: list[str] = []
        self.outcomes: list[Outcome] = []
        self.plan: tuple[int, int] = (0, 0)

    def planned(self, tasks: Sequence[Task], finished: int) -> None:
        self.plan = (len(tasks), finished)

    def started(self, task: Task) -> None:
        self.names.append(task.name)

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def note(self, text: str) -> None:
        self.notes.append(text)


def go(folder: Path, bench: Bench, watcher: Watcher | None = None, stop: bool = False) -> CampaignResult:
    return run_campaign(declare(folder), watcher, execution=Here(bench), stop_on_failure=stop)


def test_all_points_and_repetitions_small_ones_first(tmp_path: Path) -> None:
    bench, watcher = Bench(tmp_path), Watcher()
    result = go(tmp_path, bench, watcher)
    assert result.exit_code == 0
    assert watcher.plan == (8, 0)
    assert watcher.names[0] == "p=1,n=50.5 (repetition 1)"
    assert watcher.names[4] == "p=1,n=50.5 (repetition 2)"
    assert len(find_runs(tmp_path / "heat")) == 8
    assert bench.options[0].timeout == 60
    assert bench.options[0].environment == {"OMP_NUM_THREADS": "1"}
    assert bench.options[0].folder == tmp_path


def test_each_repetition_has_its_own_command_and_environment(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    text = HEAT.replace("./heat", "./heat --seed={repetition}")
    run_campaign(declare(tmp_path, text + "SEED = '{repetition}'\n"), execution=Here(bench))
    seeds = [command.partition("--seed=")[2][0] for command in bench.commands]
    assert seeds == ["1"] * 4 + ["2"] * 4 == [options.environment["SEED"] for options in bench.options]
    run_campaign(declare(tmp_path, text.replace("= 2", "= 3") + "SEED = '{repetition}'\n"), execution=Here(bench))
    assert all("--seed=3" in command for command in bench.commands[8:])


def test_a_repetition_that_failed_is_the_one_that_is_repeated(tmp_path: Path) -> None:
    """Only the failed repetition runs again, with its number."""
    text = "command = './sort {n} {repetition}'\nrepetitions = 3\n[parameters]\nn = [8]\n"
    run_campaign(declare(tmp_path, text), execution=Here(Bench(tmp_path, {"8 2": "fail"})))
    bench = Bench(tmp_path)
    run_campaign(declare(tmp_path, text), execution=Here(bench))
    assert bench.commands == ["./sort 8 2"]
    text += "[environment]\nSEED = '{repetition}'\n"  # the runs that are there had none
    bench = Bench(tmp_path)
    run_campaign(declare(tmp_path, text.replace("= 3", "= 5")), execution=Here(bench))
    assert bench.commands == ["./sort 8 1", "./sort 8 2"]


def test_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    go(tmp_path, Bench(tmp_path, {"-n 2": "fail"}))
    bench, watcher = Bench(tmp_path), Watcher()
    assert go(tmp_path, bench, watcher).exit_code == 0
    assert watcher.plan == (4, 4)
    assert all("-n 2" in command for command in bench.commands)
    again = Bench(tmp_path)
    assert go(tmp_path, again).finished == 8
    assert again.commands == []


def test_a_failing_point_does_not_stop_the_others(tmp_path: Path) -> None:
    watcher = Watcher()
    result = go(tmp_path, Bench(tmp_path, {"-n 1 ./heat --size=100": "fail"}), watcher)
    assert result.exit_code == 1
    assert len(result.outcomes) == 8
    assert [outcome.error for outcome in result.failed] == ["the program is broken"] * 2
    assert len(watcher.outcomes) == 8


def test_stop_on_failure(tmp_path: Path) -> None:
    result = go(tmp_path, Bench(tmp_path, {"--size=100": "fail"}), stop=True)
    assert (len(result.outcomes), result.not_started, result.exit_code) == (2, 6, 1)


def test_partial_runs_are_kept_and_repeated_once_per_invocation(tmp_path: Path) -> None:
    first = go(tmp_path, Bench(tmp_path, {"-n 2": "partial"}))
    assert len(first.failed) == 4
    assert all(outcome.archive for outcome in first.failed)
    second = go(tmp_path, Bench(tmp_path))
    assert len(second.outcomes) == 4
    runs = find_runs(tmp_path / "heat")
    assert len(runs) == 12
    assert sum(run.metadata.complete for run in runs) == 8


@pytest.mark.parametrize(("by", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interruption_stops_the_campaign(tmp_path: Path, by: str, code: int) -> None:
    result = go(tmp_path, Bench(tmp_path, {"-n 2": by}))
    assert (result.interrupted, result.exit_code, result.not_started) == (True, code, 5)


def test_a_missing_part_of_quipu_ends_it_at_once(tmp_path: Path) -> None:
    class Broken(Bench):
        def __call__(self, *arguments: object) -> RunArchive:
            raise EnvironmentProblem("quipu-exec is missing")

    with pytest.raises(EnvironmentProblem):
        go(tmp_path, Broken(tmp_path))


def left_over(folder: Path, pid: int, exit_code: int | None = 0, state: int = 2) -> Path:
    """Leave a raw folder as an interrupted run of a process `pid` would."""
    raw = folder / "heat" / ".raw-p=1"
    raw.mkdir(parents=True)
    rank_profile(0, 1, state=state).write(raw)
    write_launch(raw, RunMetadata({"p": 1, "n": 100}, exit_code=exit_code))
    content = json.loads((raw / "launch.json").read_text())
    (raw / "launch.json").write_text(json.dumps({**content, "agent_pid": pid}))
    return raw


def dead_process() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_a_complete_run_that_was_not_merged_is_merged(tmp_path: Path) -> None:
    raw = left_over(tmp_path, dead_process())
    watcher = Watcher()
    result = go(tmp_path, Bench(tmp_path), watcher)
    assert not raw.exists()
    assert (result.finished, len(result.outcomes)) == (1, 7)
    assert watcher.notes == ["merged the profiles of an interrupted run: p=1,n=100.r1, complete"]


def test_a_run_that_was_merged_and_not_removed_counts_once(tmp_path: Path) -> None:
    """The merging process was killed before it removed the folder."""
    raw = left_over(tmp_path, dead_process())
    content = json.loads((raw / "launch.json").read_text())
    (raw / "launch.json").write_text(json.dumps({**content, "started": "2026-11-27T20:55:09.123+00:00"}))
    merge_run(raw, tmp_path / "heat", keep_raw=True)
    watcher = Watcher()
    result = go(tmp_path, Bench(tmp_path), watcher)
    assert watcher.notes == [f"{raw} was already merged into p=1,n=100.r1: you can remove it"]
    assert (result.finished, len(result.outcomes), len(find_runs(tmp_path / "heat"))) == (1, 7, 8)


@pytest.mark.parametrize(("exit_code", "state"), [(None, 2), (1, 0), (None, 0)])
def test_what_an_interrupted_run_left_is_kept_as_partial(tmp_path: Path, exit_code: int | None, state: int) -> None:
    left_over(tmp_path, dead_process(), exit_code, state)
    watcher = Watcher()
    result = go(tmp_path, Bench(tmp_path), watcher)
    assert (result.finished, len(result.outcomes)) == (0, 8)
    why = "the exit code of the program is unknown" if state == 2 else "rank 0 ended before the program could finish"
    assert [
        note.startswith(f"merged the profiles of an interrupted run: p=1,n=100.r1, partial: {why}")
        for note in watcher.notes
    ] == [True]
    assert len(find_runs(tmp_path / "heat")) == 9


def test_the_raw_folder_of_a_living_run_is_left_alone(tmp_path: Path) -> None:
    raw = left_over(tmp_path, os.getpid())
    go(tmp_path, Bench(tmp_path))
    assert raw.exists()


def test_ranks_that_still_run_are_an_error(tmp_path: Path) -> None:
    raw = left_over(tmp_path, dead_process())
    host = os.uname().nodename
    with running_process({**os.environ, "QUIPU_DIR": str(raw)}) as process:
        (raw / "rank-0.json").write_text(json.dumps({"rank": 0, "pid": process.pid, "host": host}))
        os.utime(raw / "rank-0.json", (1.0, 1.0))  # the clock was set since
        with pytest.raises(MeasurementError, match="rank 0 of an interrupted run still runs"):
            go(tmp_path, Bench(tmp_path))
        process.kill()
    (raw / "rank-0.json").write_text(json.dumps({"rank": 0, "pid": os.getpid(), "host": host}))
    assert go(tmp_path, Bench(tmp_path)).exit_code == 0  # a later process has the number


def test_raw_folders_that_hold_nothing_usable_are_told_and_left(tmp_path: Path) -> None:
    empty = tmp_path / "heat" / ".raw-empty"
    empty.mkdir(parents=True)
    nothing = tmp_path / "heat" / ".raw-nothing"
    nothing.mkdir()
    write_launch(nothing, RunMetadata({"p": 1, "n": 100}))
    content = json.loads((nothing / "launch.json").read_text())
    (nothing / "launch.json").write_text(json.dumps({**content, "agent_pid": dead_process()}))
    watcher = Watcher()
    assert go(tmp_path, Bench(tmp_path), watcher).exit_code == 0
    assert ["cannot be merged" in note or "no usable profile" in note for note in watcher.notes] == [True, True]
    assert empty.exists() and nothing.exists()


def test_two_campaigns_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "heat").mkdir()
    with locked(tmp_path / "heat"), pytest.raises(MeasurementError, match=f"process {os.getpid()} on"):
        go(tmp_path, Bench(tmp_path))
    assert go(tmp_path, Bench(tmp_path)).exit_code == 0


def test_the_folder_of_the_experiment_is_the_program(tmp_path: Path) -> None:
    (tmp_path / "heat").write_text("")
    with pytest.raises(MeasurementError, match=r'because it is a file.*directory = "heat\.runs"'):
        go(tmp_path, Bench(tmp_path))


def test_runs_of_another_experiment_in_the_folder(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    rank_profile(0, 1).write(raw)
    merge_run(raw, tmp_path / "heat", RunMetadata({"q": 1}, exit_code=0))
    with pytest.raises(MeasurementError, match=r"q=1\.r1 has other parameters"):
        go(tmp_path, Bench(tmp_path))


def test_a_damaged_archive_counts_as_not_done(tmp_path: Path) -> None:
    go(tmp_path, Bench(tmp_path))
    (tmp_path / "heat" / "p=1,n=100.r1" / "run.json").write_text("{")
    watcher = Watcher()
    result = go(tmp_path, Bench(tmp_path), watcher)
    assert len(result.outcomes) == 1
    assert "counts as not done" in watcher.notes[0]
    assert (tmp_path / "heat" / "p=1,n=100.r1" / "run.json").read_text() == "{"


def test_build_runs_before_it_is_known_which_runs_are_of_the_program(tmp_path: Path) -> None:
    text = HEAT.replace("timeout = 60", "build = \"sh -c 'echo built >> log'\"")
    run_campaign(declare(tmp_path, text), execution=Here(Bench(tmp_path)))
    run_campaign(declare(tmp_path, text), execution=Here(Bench(tmp_path)))
    assert (tmp_path / "log").read_text() == "built\nbuilt\n"
    run_campaign(declare(tmp_path, text), execution=Here(Bench(tmp_path)), keep_old=True)
    assert (tmp_path / "log").read_text() == "built\nbuilt\n"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        ("false", "build: false: ended with exit code 1"),
        ("./none", "build: ./none: ended with exit code 127"),
        ("rm -f nothing; false && exit 3", "build: rm -f nothing; false && exit 3: ended with exit code 1"),
    ],
)
def test_a_build_that_fails(tmp_path: Path, build: str, message: str) -> None:
    bench = Bench(tmp_path)
    with pytest.raises(MeasurementError, match=message):
        run_campaign(declare(tmp_path, HEAT.replace("timeout = 60", f'build = "{build}"')), execution=Here(bench))
    assert bench.commands == []
