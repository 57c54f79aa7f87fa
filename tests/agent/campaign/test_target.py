# SPDX-License-Identifier: Apache-2.0
"""Campaigns with a target: their count-only runs, failures, and cost."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from heat_campaign import declare
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.campaign import CampaignResult, Here, run_campaign
from quipu.agent.campaign.counts.costs import Cost, Costs
from quipu.agent.campaign.counts.points import ranks_parameter, sizes
from quipu.agent.campaign.counts.runs import CountRuns
from quipu.agent.campaign.file import read_campaign
from quipu.agent.campaign.plan import plan_of
from quipu.agent.campaign.repetition import LaunchOptions
from quipu.agent.campaign.task import Silent
from quipu.agent.merge.experiment import find_runs, load_experiment
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import FormatError, MeasurementError
from quipu.modeling.rank_numbers import rank_counts

HEAT = """
[experiment]
name = "heat"
command = "mpirun -n {p} ./heat {n}"
[parameters]
p = [1, 2]
n = [10, 20, 30]
[target]
p = 16
n = 1000
"""
BUDGET = '[counts]\nbudget = "1h"\n'


class Program:
    """Stands in for the launch: makes archives, or fails where it is told to."""

    def __init__(self, folder: Path, bad: Sequence[str] = (), seconds: float = 1.0) -> None:
        self.folder, self.bad, self.seconds = folder, bad, seconds
        self.timed: list[str] = []
        self.counted: list[str] = []
        self.timeouts: list[float | None] = []

    def __call__(
        self,
        command: Sequence[str],
        parameters: Mapping[str, float],
        repetition: int | None,
        directory: Path,
        options: LaunchOptions,
    ) -> RunArchive:
        text = " ".join(command)
        (self.counted if options.counts_only else self.timed).append(text)
        self.timeouts.append(options.timeout)
        if any(part in text for part in self.bad):
            raise MeasurementError("the grid is too small")
        raw = self.folder / "raw"
        raw.mkdir()
        profile = rank_profile(0, 1, attributes={"host": "n1", "rank": "0", "ranks": "1"})
        if options.counts_only:
            profile.clock = 0
        profile.write(raw)
        launcher = {"family": "smpi" if "smpirun" in text else "openmpi"}
        metadata = RunMetadata(
            dict(parameters), exit_code=0, command=tuple(command), seconds=self.seconds, launcher=launcher
        )
        return merge_run(raw, directory, metadata)


class Notes(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def go(folder: Path, program: Program, text: str = HEAT + BUDGET, notes: Notes | None = None) -> CampaignResult:
    return run_campaign(declare(folder, text), notes, execution=Here(program))


def test_ranks_up_to_the_target_are_counted_at_the_smallest_sizes(tmp_path: Path) -> None:
    program = Program(tmp_path)
    result = go(tmp_path, program)
    assert result.exit_code == 0
    assert len(program.timed) == 6
    assert program.counted == [f"mpirun -n {p} ./heat {n}" for n in (10, 20) for p in (4, 8, 16)]
    runs = [run.metadata for run in find_runs(tmp_path / "heat")]
    assert sorted((run.parameters["p"], run.parameters["n"]) for run in runs if run.counts_only) == [
        (p, n) for p in (4, 8, 16) for n in (10, 20)
    ]
    experiment = load_experiment(tmp_path / "heat")
    assert (experiment.configurations, experiment.of_time.configurations) == (12, 6)


def test_the_same_command_goes_on(tmp_path: Path) -> None:
    go(tmp_path, Program(tmp_path, ["-n 16"]))
    again = Program(tmp_path)
    result = go(tmp_path, again)
    assert result.exit_code == 0
    assert (result.finished, result.complete) == (10, 12)
    assert (again.timed, again.counted) == ([], ["mpirun -n 16 ./heat 10", "mpirun -n 16 ./heat 20"])


def test_a_count_only_run_is_no_run_with_times(tmp_path: Path) -> None:
    """A count-only run does not replace a timed run at the same point, nor the reverse."""
    first = HEAT.replace("p = [1, 2]", "p = [1]").replace("p = 16", "p = 2").replace("n = [10, 20, 30]", "n = [10, 20]")
    go(tmp_path, Program(tmp_path), first + BUDGET)
    program = Program(tmp_path)
    go(tmp_path, program, HEAT)
    assert [command for command in program.timed if "-n 2" in command] == [
        f"mpirun -n 2 ./heat {n}" for n in (10, 20, 30)
    ]


def test_where_the_smallest_size_does_not_run_a_larger_one_is_counted(tmp_path: Path) -> None:
    program, notes = Program(tmp_path, ["-n 8 ./heat 10", "-n 16 ./heat 10"]), Notes()
    result = go(tmp_path, program, notes=notes)
    assert result.exit_code == 0
    assert program.counted[:4] == [
        "mpirun -n 4 ./heat 10",
        "mpirun -n 8 ./heat 10",
        "mpirun -n 8 ./heat 20",
        "mpirun -n 16 ./heat 20",  # what is too small for 8 ranks is not tried with 16
    ]
    assert any("p=8,n=10 (counts) did not run; the next larger size is tried" in note for note in notes.notes)


def test_a_number_of_ranks_that_the_program_does_not_allow_is_skipped(tmp_path: Path) -> None:
    program, notes = Program(tmp_path, ["-n 8 "]), Notes()
    result = go(tmp_path, program, notes=notes)
    assert [command for command in program.counted if "-n 8" in command] == [
        f"mpirun -n 8 ./heat {n}" for n in (10, 20, 30)
    ]
    assert "mpirun -n 16 ./heat 10" in program.counted
    assert result.exit_code == 1
    assert [outcome.task.name for outcome in result.failed] == ["p=8,n=30 (counts)"]
    assert any("p = 8 is skipped: the program ran with none of 3 sizes" in note for note in notes.notes)


def test_a_budget_ends_the_count_only_runs(tmp_path: Path) -> None:
    go(tmp_path, Program(tmp_path, seconds=1000.0), HEAT.partition("[target]")[0])
    program, notes = Program(tmp_path), Notes()
    text = HEAT + '[counts]\nbudget = "15min"\n'
    plan = plan_of(declare(tmp_path, text))
    result = go(tmp_path, program, text, notes)
    assert (result.exit_code, program.counted, plan.planned) == (0, [], ())
    found = [note for note in notes.notes if "the budget of 15 min does not reach p = 4" in note]
    assert found == [f"counts: {note}" for note in plan.notes] != []


def test_a_run_may_take_what_is_left_of_the_budget(tmp_path: Path) -> None:
    program = Program(tmp_path)
    go(tmp_path, program)
    assert program.timeouts[:6] == [None] * 6
    assert all(timeout is not None and 0 < timeout <= 3600.0 for timeout in program.timeouts[6:])


@pytest.mark.parametrize(("seconds", "second"), [(1.0, [4, 8, 16]), (3.0, [4]), (9.0, [])])
def test_a_second_size_takes_no_longer_than_the_first_without_a_budget(
    tmp_path: Path, seconds: float, second: list[int]
) -> None:
    """Three count-only runs took 10 s each; with times the second size takes `seconds`, the first one 1 s."""
    campaign = declare(tmp_path, HEAT)
    for n, own in ((10, 1.0), (20, seconds)):
        Program(tmp_path, seconds=own)(("./heat",), {"p": 2, "n": n}, None, campaign.directory, LaunchOptions())
    for p in (4, 8, 16):
        how = LaunchOptions(clock="none")
        Program(tmp_path, seconds=10.0)(("./heat",), {"p": p, "n": 10}, None, campaign.directory, how)
    assert [(one.number, one.task.parameters["n"]) for one in CountRuns(campaign).plan()] == [(p, 20) for p in second]


def test_simulated_ranks_are_used_where_they_are_cheaper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}")
    text = (
        HEAT.replace("p = 16", "p = 64") + '[counts]\nlauncher = "smpi"\ncommand = "./heat-smpi {n}"\nbudget = 3600\n'
    )
    text += 'build = "touch built"\n'
    program = Program(tmp_path)
    assert go(tmp_path, program, text).exit_code == 0
    assert (tmp_path / "built").exists()
    of = [command.split()[0] for command in program.counted]
    assert set(of[:2]) == {"mpirun", "smpirun"}  # each once, to know what both cost
    assert all(
        command.endswith("./heat-smpi 10")
        for command in program.counted
        if "smpirun" in command and " 20" not in command
    )
    again = Program(tmp_path)
    assert go(tmp_path, again, text).exit_code == 0
    assert (again.timed, again.counted) == ([], [])  # the runs of both kinds are still what the file declares


def test_a_failing_simulation_is_replaced_by_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/usr/bin/{name}")
    text = (
        HEAT.replace("p = 16", "p = 32") + '[counts]\nlauncher = "smpi"\ncommand = "./heat-smpi {n}"\nbudget = 3600\n'
    )
    program, notes = Program(tmp_path, ["smpirun"]), Notes()
    assert go(tmp_path, program, text, notes).exit_code == 0
    assert sum("smpirun" in command for command in program.counted) == 1
    assert any("further runs are with processes" in note for note in notes.notes)


def test_a_plan_starts_nothing(tmp_path: Path) -> None:
    campaign = declare(tmp_path, HEAT + BUDGET)
    plan = plan_of(campaign)
    assert not campaign.directory.exists()
    assert [(one.parameters["p"], one.counts) for one in plan.planned][::3] == [
        (1, False),
        (2, False),
        (4, True),
        (4, True),
    ]
    assert plan.unknown == 12
    go(tmp_path, Program(tmp_path), HEAT.partition("[target]")[0])
    after = plan_of(campaign)
    assert after.finished == 6
    assert [one.seconds for one in after.planned if one.counts] == pytest.approx(
        [one.seconds for one in CountRuns(campaign).plan()]
    )
    assert not any(one.at_least for one in after.planned)


@pytest.mark.parametrize(
    ("declared", "target", "expected"),
    [
        ([1, 2, 4], 64, [8, 16, 32, 64]),
        ([1, 2, 4], 48, [8, 16, 32, 48]),
        ([1, 4, 16], 512, [64, 256, 512]),
        ([1, 8, 27], 1000, [216, 1000]),
        ([1, 4, 9], 64, [36, 64]),
        ([1, 2, 3, 6], 32, [8, 16, 32]),
        ([1], 8, [2, 4, 8]),
        ([1, 2, 4], 4, []),
    ],
)
def test_numbers_of_ranks_continue_the_declared_ones(declared: list[float], target: float, expected: list[int]) -> None:
    assert rank_counts(declared, target) == expected


def test_sizes_grow_in_all_parameters(tmp_path: Path) -> None:
    text = HEAT.replace("./heat {n}", "./heat {n} {k}").replace("n = [10, 20, 30]", "n = [10, 20, 30]\nk = [1, 2]")
    campaign = declare(tmp_path, text + "k = 5\n")
    assert sizes(campaign, "p") == ([(10, 1), (20, 2), (30, 2), (45, 4), (68, 8)], 3)


@pytest.mark.parametrize(
    ("command", "parameters", "ranks"),
    [
        ("mpirun -n {q} ./a {n}", "q = [1, 2]\nn = [1, 2]", "q"),
        ("srun --ntasks {p} ./a {n}", "p = [1, 2]\nn = [1, 2]", "p"),
        ("./a.sh {nprocs} {n}", "nprocs = [1, 2]\nn = [1, 2]", "nprocs"),
        ("./a {n} {m}", "m = [1, 2]\nn = [1, 2]", None),
    ],
)
def test_the_parameter_that_is_the_number_of_ranks(
    tmp_path: Path, command: str, parameters: str, ranks: str | None
) -> None:
    campaign = declare(tmp_path, f'[experiment]\ncommand = "{command}"\n[parameters]\n{parameters}\n')
    assert ranks_parameter(campaign) == ranks


def test_costs_follow_the_runs_before() -> None:
    costs = Costs(processors=2)
    assert costs.seconds(8, (10,), False) is None
    costs.add(Cost(2, (10,), 3.0, counts_only=False, simulated=False))
    costs.add(Cost(2, (20,), 6.0, counts_only=False, simulated=False))
    assert costs.seconds(8, (10,), False) == pytest.approx(12.0)  # four ranks for each processor
    costs.add(Cost(8, (10,), 4.0, counts_only=True, simulated=False, memory=800))
    assert costs.seconds(16, (10,), False) == pytest.approx(8.0)
    assert costs.seconds(16, (20,), False) == pytest.approx(16.0)
    costs.add(Cost(16, (10,), 12.0, counts_only=True, simulated=False))
    assert costs.seconds(32, (10,), False) == pytest.approx(36.0)  # threefold, as from 8 to 16
    assert costs.seconds(32, (10,), True) is None
    costs.add(Cost(16, (10,), 2.0, counts_only=True, simulated=True))
    assert costs.seconds(32, (10,), True) == pytest.approx(4.0)
    assert costs.seconds(32, (10,), True, unknown=0.0) == pytest.approx(2.0)
    costs.add(Cost(32, (10,), 2.0, counts_only=True, simulated=True))
    assert costs.seconds(512, (10,), True) == pytest.approx(2.0)  # from 16 to 32 it did not grow
    assert costs.memory(32) == 3200


def test_processor_time_grows_with_ranks_also_below_the_number_of_processors() -> None:
    costs = Costs(processors=16)
    for ranks, seconds in ((8, 1.0), (32, 4.0)):  # processor seconds: 8 and 64, so the exponent is 1.5
        costs.add(Cost(ranks, (10,), seconds, counts_only=True, simulated=False))
    assert costs.seconds(128, (10,), False) == pytest.approx(32.0)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("[target]\np = 4\n", "target needs a value for each of: p, n"),
        ("[target]\np = 4\nn = -1\n", "target.n"),
        ("[counts]\nbudget = 3\n", "belongs to"),
        ('[target]\np = 4\nn = 1\n[counts]\nbudget = "soon"\n', 'should be like "15min"'),
        ('[target]\np = 4\nn = 1\n[counts]\nlauncher = "smpi"\n', "go together"),
        ('[target]\np = 4\nn = 1\n[counts]\nlauncher = "smpi"\ncommand = "./heat {n}"\n', "needs another name"),
        ('[target]\np = 4\nn = 1\n[counts]\nlauncher = "smpi"\ncommand = "./h {m}"\n', "is not a parameter"),
        ("[target]\np = 4\nn = 1\n[counts]\nspeed = 1\n", "counts.speed is unknown"),
        ("[target]\np = 4\nn = 1\n[search]\nbudget = 1\ntarget = {p = 4, n = 2}\n", "also gives the target"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, tables: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        declare(tmp_path, HEAT.partition("[target]")[0] + tables)


def test_a_search_is_for_the_declared_target(tmp_path: Path) -> None:
    campaign = declare(tmp_path, HEAT + "[search]\nbudget = 1\n")
    assert campaign.search is not None and campaign.search.target == {"p": 16.0, "n": 1000.0}


def test_jobs_get_no_count_only_runs(tmp_path: Path) -> None:
    campaign = declare(tmp_path, HEAT + '[scheduler]\nname = "slurm"\nminutes = 5\n')
    counting = CountRuns(campaign)
    assert counting.plan() == [] and "where runs are jobs" in counting.why_none
    assert read_campaign(campaign.path).target == {"p": 16.0, "n": 1000.0}
