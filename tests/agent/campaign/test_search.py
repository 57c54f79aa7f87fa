# SPDX-License-Identifier: Apache-2.0
"""Campaigns that choose their runs: the [search] table, budgets, going on, ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from profile_writer import Node, rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.adaptive import chosen_batches
from quipu.agent.campaign.campaign import CampaignResult, Here, run_campaign
from quipu.agent.campaign.file import Campaign, read_campaign
from quipu.agent.campaign.patience import Patience
from quipu.agent.campaign.repetition import LaunchOptions
from quipu.agent.campaign.task import Outcome, Silent
from quipu.agent.merge.experiment import find_runs, load_experiment
from quipu.agent.merge.run import merge_run
from quipu.modeling.analysis import analyze
from quipu.modeling.design.state import Suggestion
from quipu.modeling.errors import FormatError, MeasurementError

TEXT = """
[experiment]
repetitions = 4
command = "mpirun -n {p} ./heat {n}"
[parameters]
p = {from = 1, to = 16, factor = 2}
n = {from = 10, to = 60, step = 10}
[search]
target = {p = 32, n = 100}
budget = "20%"
constraints = ["n % 20 == 0 or p == 1 or n == 10"]
patience = 0
"""


class Program:
    """Stands in for the launch: a run takes about n² / p + p of time; breaks at points that `bad` names.

    noise: relative standard deviation of one run, beside what changes with the number of runs.
    """

    def __init__(self, folder: Path, bad: str = "", noise: float = 0.0) -> None:
        self.folder, self.bad, self.noise = folder, bad, noise
        self.random = np.random.default_rng(2)
        self.commands: list[str] = []

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
        if self.bad and self.bad in text:
            raise MeasurementError("the program is broken")
        p, n = parameters["p"], parameters["n"]
        ticks = round(
            1e6 * (n * n / p + 3 * p) * (1 + 0.001 * (len(self.commands) % 5) + self.noise * self.random.normal())
        )
        raw = self.folder / "raw"
        raw.mkdir()
        profile = rank_profile(0, 1)
        work = round(1000 * (n * n / p + 3 * p))
        main, solve = Node(2, 1, 1, (1, 1000, 5, 0)), Node(3, 2, 2, (1, ticks, work, 0))
        profile.nodes = [Node(1, 0, 0, (0, 7, 0, 0)), main, solve]
        profile.write(raw)
        return merge_run(raw, directory, RunMetadata(dict(parameters), exit_code=0))


class Notes(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.outcomes: list[Outcome] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


def declare(folder: Path, text: str = TEXT) -> Campaign:
    path = folder / "heat.toml"
    path.write_text(text)
    return read_campaign(path)


def go(folder: Path, program: Program, text: str = TEXT, notes: Silent | None = None) -> CampaignResult:
    return run_campaign(declare(folder, text), notes, execution=Here(program), choose=chosen_batches)


def test_ranges_constraints_and_the_plan_are_read(tmp_path: Path) -> None:
    campaign = declare(tmp_path)
    assert campaign.points[0] == (1, 10)
    assert campaign.points[-1] == (16, 60)
    assert len(campaign.points) == 30
    plan = campaign.search
    assert plan is not None
    assert plan.target == {"p": 32, "n": 100}
    assert plan.budget.hours(50.0) == 10.0
    assert (plan.strategy, plan.batch, plan.patience) == ("posterior", 4, 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n = 100}", "n = -1}", "target"),
        ("target = {p = 32, n = 100}", "target = {p = 32}", "search.target needs a value for each of: p, n"),
        ("target = {p = 32, n = 100}\n", "", "target"),
        ('"20%"', '"many"', "budget 'many'"),
        ('"20%"', "-3", "budget"),
        ("n % 20", "m % 20", "no parameter m"),
        ("patience = 0", "patience = -1", "patience"),
        ("patience = 0", 'strategy = "magic"', "'magic' is unknown; choose one of posterior, cpf"),
        ("patience = 0", 'ranks = "q"', "'q' is neither a parameter"),
        ("patience = 0", "speed = 3", "search.speed is unknown"),
        ("factor = 2", "factor = 1", "a range needs from < to"),
        ("step = 10", "stride = 10", "a range needs"),
        ("from = 10, to = 60", "from = 60, to = 10", "a range needs from < to"),
        ("from = 10, to = 60, step = 10", "from = 1, to = 1e9, step = 1", "more than"),
    ],
)
def test_mistakes_name_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(FormatError, match=r"heat\.toml") as error:
        declare(tmp_path, TEXT.replace(old, new))
    assert message in str(error.value)


def test_a_search_measures_a_part_of_the_points_and_says_why(tmp_path: Path) -> None:
    program, notes = Program(tmp_path), Notes()
    result = go(tmp_path, program, notes=notes)
    assert result.exit_code == 0
    assert 8 < len(program.commands) < 120
    assert any("reduces the variance of the prediction" in note for note in notes.notes)
    assert "search: nothing more fits the budget" in notes.notes[-1]
    assert "less than all points with all repetitions" in notes.notes[-1]
    for command in set(program.commands):
        p, n = int(command.split()[2]), int(command.split()[4])
        assert n % 20 == 0 or p == 1 or n == 10
        assert program.commands.count(command) <= 4


def test_a_search_goes_on_where_it_was_stopped_and_ends_at_its_budget(tmp_path: Path) -> None:
    program = Program(tmp_path)
    go(tmp_path, program)
    runs = len(find_runs(tmp_path / "heat"))
    again = Program(tmp_path)
    result = go(tmp_path, again)
    assert not again.commands
    assert result.exit_code == 0
    more = Program(tmp_path)
    go(tmp_path, more, TEXT.replace("20%", "40%"))
    assert more.commands
    assert len(find_runs(tmp_path / "heat")) == runs + len(more.commands)


def test_the_budget_of_core_hours_is_kept(tmp_path: Path) -> None:
    all_of_it = Program(tmp_path)
    go(tmp_path, all_of_it)
    experiment = load_experiment(tmp_path / "heat")
    hours = 0.0
    for point, times in zip(experiment.points, experiment.values["time"].sum(axis=0), strict=True):
        hours += point[0] * float(times[~np.isnan(times)].sum()) / 3600
    folder = tmp_path / "half"
    folder.mkdir()
    fewer = Program(folder)
    go(folder, fewer, TEXT.replace('"20%"', f"{0.5 * hours:.17f}"))
    assert 0 < len(fewer.commands) < len(all_of_it.commands)


def test_without_improvement_the_search_ends(tmp_path: Path) -> None:
    notes = Notes()
    go(tmp_path, Program(tmp_path), TEXT.replace("patience = 0", "patience = 1").replace("20%", "100%"), notes)
    assert "1 batch did not improve the prediction (standard deviation" in notes.notes[-1]


def test_batches_of_the_lines_and_those_that_lead_on_do_not_end_a_search(tmp_path: Path) -> None:
    program, notes = Program(tmp_path, noise=0.05), Notes()
    go(tmp_path, program, TEXT.replace("patience = 0", "patience = 1"), notes)
    chosen = [note for note in notes.notes if "reduces the variance of the prediction" in note]
    assert len(chosen) > 8


def next_batch(*gains: float) -> list[Suggestion]:
    return [Suggestion(0, 1, 1.0, "", gain) for gain in gains]


def test_a_batch_counts_that_neither_made_the_prediction_better_nor_leads_on() -> None:
    patience, little, much = Patience(2), next_batch(0.02, 0.01), next_batch(0.08, 0.02)
    assert not patience.look(0.30, little)  # nothing before it to compare with
    assert not patience.look(0.29, little)
    assert not patience.look(0.25, little)  # better: counts anew
    assert not patience.look(0.40, much)
    assert not patience.look(0.40, little)
    assert not patience.look(0.41, much)
    assert patience.look(0.41, little)


def test_where_nothing_is_open_batches_count() -> None:
    patience, check = Patience(2), next_batch(0.0)
    assert [patience.look(0.0, check) for _ in range(3)] == [False, False, True]
    patience = Patience(1)
    assert [patience.look(one, check) for one in (float("nan"), 0.2, 0.1)] == [True, False, False]


def test_points_that_fail_do_not_repeat_without_end(tmp_path: Path) -> None:
    program, notes = Program(tmp_path, "mpirun"), Notes()
    result = go(tmp_path, program, notes=notes)
    assert result.exit_code == 1
    assert len(program.commands) <= 4


def test_no_point_left_by_the_constraints(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="no point fulfils"):
        go(tmp_path, Program(tmp_path), TEXT.replace("n % 20 == 0 or p == 1 or n == 10", "p > 100"))


def test_what_the_search_measured_predicts_the_target(tmp_path: Path) -> None:
    go(tmp_path, Program(tmp_path))
    analysis = analyze(load_experiment(tmp_path / "heat"))
    (solve,) = [
        entry.model for path, entry in enumerate(analysis.models("time")) if "solve" in analysis.tree.label(path)
    ]
    true = 1e6 * (100 * 100 / 32 + 3 * 32) / 1e9
    assert solve.predict((32.0, 100.0)).value == pytest.approx(true, rel=0.1)  # type: ignore[union-attr]
