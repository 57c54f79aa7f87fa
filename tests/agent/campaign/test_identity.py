# SPDX-License-Identifier: Apache-2.0
"""Do not mix runs of another program, command or machine into a campaign or its models."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from heat_campaign import HEAT, declare
from profile_writer import rank_profile
from quipu.agent.archive.fingerprint import Fingerprint, ProgramIdentity, differences, groups, without_numbers
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_metadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.campaign import Here, run_campaign
from quipu.agent.campaign.claims import wrong_ranks, wrong_threads
from quipu.agent.campaign.file import Campaign
from quipu.agent.campaign.identity import fingerprint_of, measuring_facts, outdated
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, run
from quipu.agent.campaign.task import Silent
from quipu.agent.launch.launchers.base import LaunchPlan
from quipu.agent.merge.experiment import find_runs, load_experiment, mixed_runs
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import MeasurementError, UsageError


class Heard(Silent):
    """Keeps notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class Bench:
    """Launches that give a profile of a program in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "program"
        if not self.program.exists():
            shutil.copy("/bin/true", self.program)
        self.runs = 0

    def __call__(
        self, command: object, parameters: object, repetition: object, directory: Path, options: LaunchOptions
    ) -> RunArchive:
        self.runs += 1
        raw = self.folder / "raw"
        raw.mkdir()
        attributes = {"host": "n1", "rank": "0", "ranks": "1", "program": str(self.program)}
        rank_profile(0, 1, attributes=attributes).write(raw)
        facts = {**measuring_facts(options), **options.template}
        metadata = RunMetadata(dict(parameters), exit_code=0, fingerprint=Fingerprint(facts))  # type: ignore[call-overload]
        return merge_run(raw, directory, metadata)


def measured(campaign: Campaign, bench: Bench, keep_old: bool = False) -> tuple[int, list[str]]:
    """Return how many runs a campaign did, and its notes."""
    heard, before = Heard(), bench.runs
    run_campaign(campaign, heard, execution=Here(bench), keep_old=keep_old)
    return bench.runs - before, heard.notes


PROGRAM = ProgramIdentity("/a/heat", "1" * 32, "clang 19")
ONE = Fingerprint({"command": "./heat #", "machine": "A, 4 processors"}, {"heat": PROGRAM})


def test_numbers_of_a_command_are_those_of_its_parameters() -> None:
    assert without_numbers(["mpirun", "-n", "4", "./heat", "--n=1e6", "2x8"]) == "mpirun -n # ./heat --n=# #x#"
    assert without_numbers(["mpirun", "-n", "{p}", "./heat"]) == "mpirun -n # ./heat"


def test_what_differs_is_named() -> None:
    other = Fingerprint(
        {"command": "./heat # fast", "machine": "A, 4 processors"},
        {"heat": replace(PROGRAM, digest="2" * 32, compiler="gcc 12")},
    )
    assert differences(ONE, ONE) == []
    assert differences(ONE, other) == [
        "command: ./heat # or ./heat # fast",
        "heat: two builds (11111111 or 22222222, compiler clang 19 or gcc 12)",
    ]


def test_a_program_for_each_size_and_old_archives_fit_together() -> None:
    sized = [replace(ONE, programs={f"heat.{size}": replace(PROGRAM, digest=str(size))}) for size in (1, 2)]
    assert differences(*sized) == []
    assert groups("abc", [ONE, None, *sized[:1]]) == [["a", "b", "c"]]
    fast = replace(ONE, facts={**ONE.facts, "command": "other"})
    assert groups("abcd", [None, ONE, fast, ONE]) == [["a", "b", "d"], ["c"]]


def test_another_build_is_measured_again(tmp_path: Path) -> None:
    campaign, bench = declare(tmp_path, HEAT), Bench(tmp_path)
    total, _ = measured(campaign, bench)
    assert measured(campaign, bench) == (0, [])
    shutil.copy("/bin/false", bench.program)
    assert measured(campaign, bench, keep_old=True) == (0, [])
    again, notes = measured(campaign, bench)
    assert again == total == len(find_runs(campaign.directory))
    assert notes[0].startswith(f"{total} runs were measured under other conditions (program: two builds (")
    assert len(list((campaign.directory / ".replaced").iterdir())) == total
    assert measured(campaign, bench) == (0, [])


def test_the_program_of_simulated_ranks_is_known(tmp_path: Path) -> None:
    """SimGrid loads the program into its process, so profiles only name this process."""
    shutil.copy("/bin/true", tmp_path / "heat")
    plan = LaunchPlan(("smpirun", "./heat"), {}, 2, (Path("heat"),), "smpi", "3.32", True, rank_processes=False)
    options = LaunchOptions(folder=tmp_path)
    before = fingerprint_of(["smpirun", "./heat"], plan, options)
    assert before.programs["heat"].path == str(tmp_path / "heat")
    shutil.copy("/bin/false", tmp_path / "heat")
    (reason,) = outdated(before, {})
    assert reason.startswith("heat: two builds (")
    alone = replace(plan, rank_processes=True)
    assert fingerprint_of(["mpirun", "./heat"], alone, options).programs == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [("./heat --size={n}", "./heat --fast --size={n}"), ("OMP_NUM_THREADS = 1", "OMP_NUM_THREADS = 2")],
    ids=["command", "environment"],
)
def test_a_changed_campaign_is_measured_again(tmp_path: Path, old: str, new: str) -> None:
    assert old in HEAT
    bench = Bench(tmp_path)
    total, _ = measured(declare(tmp_path, HEAT), bench)
    again, _ = measured(declare(tmp_path, HEAT.replace(old, new)), bench)
    assert again == total


def test_options_of_measuring_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    stored = Fingerprint(measuring_facts(LaunchOptions()))
    assert outdated(stored, measuring_facts(LaunchOptions())) == []
    for options in (LaunchOptions(python=True), LaunchOptions(functions=True), LaunchOptions(mpi_wait="off")):
        assert len(outdated(stored, measuring_facts(options))) == 1
    assert outdated(stored, measuring_facts(LaunchOptions(clock="none"))) == []  # what it counts is the same
    filter_file = tmp_path / "a.filter"
    filter_file.write_text("SCOREP_REGION_NAMES_BEGIN\nSCOREP_REGION_NAMES_END\n")
    with_filter = Fingerprint(measuring_facts(LaunchOptions(filter_file=filter_file)))
    filter_file.write_text("SCOREP_REGION_NAMES_BEGIN\nEXCLUDE *\nSCOREP_REGION_NAMES_END\n")
    assert outdated(with_filter, measuring_facts(LaunchOptions(filter_file=filter_file)))


def test_runs_of_two_programs_are_no_experiment(tmp_path: Path) -> None:
    bench, runs = Bench(tmp_path), tmp_path / "runs"
    for n in (1, 2, 3):
        bench([], {"n": n}, None, runs, LaunchOptions())
    shutil.copy("/bin/false", bench.program)
    bench([], {"n": 4}, None, runs, LaunchOptions())
    groups = r"3 runs \(n=1.r1, n=2.r1, n=3.r1\) and 1 run \(n=4.r1\)"
    expected = groups + r" were measured under different conditions \(program: two builds"
    with pytest.raises(MeasurementError, match=expected):
        load_experiment(runs)
    with mixed_runs(True):
        assert "under different conditions" in load_experiment(runs).notes[0]
    assert read_metadata(runs / "n=4.r1").fingerprint is not None


def test_a_parameter_that_is_the_number_of_ranks_is_that_of_the_launch() -> None:
    assert "parameter p = 4 is the number of ranks for models, but the command starts 2" in wrong_ranks({"p": 4}, 2)
    assert "starts 1" in wrong_ranks({"n": 7, "ranks": 2}, 1)
    for parameters, ranks in (({"p": 4}, 4), ({"p": 4}, None), ({"n": 4}, 2), ({"p": 100, "ranks": 4}, 4)):
        assert wrong_ranks(parameters, ranks) == ""


def test_a_parameter_that_is_the_number_of_threads_is_that_of_the_environment() -> None:
    assert "OMP_NUM_THREADS is 2" in wrong_threads({"threads": 4}, {"OMP_NUM_THREADS": "2"})
    for parameters, variables in (
        ({"threads": 4}, {}),
        ({"t": 2}, {"OMP_NUM_THREADS": "2"}),
        ({"n": 4}, {"OMP_NUM_THREADS": "2"}),
    ):
        assert wrong_threads(parameters, variables) == ""


def test_a_run_with_a_wrong_number_of_ranks_is_not_started(installed: Path) -> None:
    with pytest.raises(UsageError, match="starts 2"):
        run(["mpirun", "-n", "2", "true"], {"p": 4}, None, "runs", LaunchOptions(mpi=False, node_agent=False))
    assert not (installed / "runs").exists()


def test_what_may_launch_ranks_is_compared_afterwards(installed: Path) -> None:
    """A script may call a launcher, so the number of ranks is only known at the end."""
    with pytest.raises(RunFailed, match="starts 1") as failure:
        run(["true"], {"p": 4}, None, "runs", LaunchOptions(mpi=False))
    assert failure.value.archive is not None and failure.value.archive.metadata.partial
