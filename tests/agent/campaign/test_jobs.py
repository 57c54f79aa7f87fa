# SPDX-License-Identifier: Apache-2.0
"""Runs as jobs of a scheduler that stands in: the table, claims, lost and doubled jobs, controllers that forget."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from peers import needs
from profile_writer import rank_profile
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.campaign.campaign import run_campaign
from quipu.agent.campaign.file import Campaign, read_campaign
from quipu.agent.campaign.jobs.folder import Asked, Claim, JobFolder, Result, unsettled
from quipu.agent.campaign.jobs.plan import SchedulerPlan
from quipu.agent.campaign.jobs.queue import State, SubmissionFailed, scheduler_queue
from quipu.agent.campaign.jobs.scheduled import Scheduled
from quipu.agent.campaign.progress_lines import ProgressLines
from quipu.agent.campaign.task import Outcome, Silent
from quipu.agent.merge.experiment import scan_runs
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import EnvironmentProblem, FormatError, QuipuError

if TYPE_CHECKING:
    from quipu.agent.campaign.jobs.slurm import Hindrance

TEXT = """
[experiment]
command = "mpirun -n {p} ./heat {repetition}"
repetitions = 2
timeout = 600
[parameters]
p = [1, 2, 4]
[scheduler]
name = "slurm"
ranks = "{p}"
ranks_per_node = 2
at_once = 2
"""


def declare(folder: Path, text: str = TEXT) -> Campaign:
    path = folder / "heat.toml"
    path.write_text(text)
    return read_campaign(path)


def test_the_table_is_read(tmp_path: Path) -> None:
    plan = declare(tmp_path).scheduler
    assert plan is not None
    assert (plan.name, plan.minutes, plan.at_once) == ("slurm", 15.0, 2)  # the time limit of a run, and 5 minutes
    assert plan.ranks_at({"p": 5}) == 5
    assert plan.nodes(5) == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "slurm"', 'name = "sge"', "'sge' is unknown; choose one of slurm, pbs"),
        ('name = "slurm"', "", "name"),
        ('ranks = "{p}"', 'ranks = "{q}"', r"scheduler.ranks: should be a parameter"),
        ('ranks = "{p}"', "ranks = 0", "ranks"),
        ("at_once = 2", "at_once = 0", "at_once"),
        ("at_once = 2", "speed = 2", "scheduler.speed is unknown"),
        ("at_once = 2", 'queue = "a\\nb"', "contains characters that no scheduler accepts"),
        ("at_once = 2", 'options = {qos = "$(x)"}', "contains characters that no scheduler accepts"),
        ("timeout = 600", "", "scheduler.minutes is missing"),
        ("timeout = 600", "scheduler = 3", "scheduler"),
    ],
)
def test_mistakes_in_the_table(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        declare(tmp_path, TEXT.replace(old, new))


class Stand:
    """A scheduler whose jobs are threads. behave: what a submission of a number of ranks does, by order."""

    def __init__(self, plan: SchedulerPlan, folder: Path, behave: Mapping[int, str] | None = None) -> None:
        self.plan, self.folder = plan, folder
        self.behave = dict(behave or {})
        self.begun: Counter[float] = Counter()
        self.commands: Counter[str] = Counter()
        self.ranks: list[int] = []
        self.most = 0
        self._states: dict[str, Callable[[], State]] = {}
        self._submissions = 0
        self.cancelled: list[str] = []
        self._hindrances: dict[str, Hindrance] = {}

    def submit(self, job: JobFolder, ranks: int) -> str:
        self._submissions += 1
        how = self.behave.get(self._submissions, "")
        if how in ("refused", "silent"):
            raise SubmissionFailed(f"slurm: {how}", later=how == "silent")
        self.ranks.append(ranks)
        if how.startswith("waits: "):
            from quipu.agent.campaign.jobs.slurm import hindrance_of

            found = hindrance_of("7", how.removeprefix("waits: "))
            assert found is not None
            self._hindrances[job.path.name] = found
            looks = iter(range(5))
            self._states[job.path.name] = lambda: "waiting" if found.never or next(looks, None) is not None else "ended"
            return str(self._submissions)
        thread = threading.Thread(target=self._run, args=(job, how))
        if how != "forgotten":
            thread.start()
        if how == "doubled":
            threading.Thread(target=self._run, args=(JobFolder(job.path), how)).start()
        self._states[job.path.name] = lambda: "running" if thread.is_alive() else "unknown"
        self.most = max(self.most, sum(state() == "running" for state in self._states.values()))
        return str(self._submissions)

    def adopt(self, job: JobFolder, native: str) -> None:
        self._states.setdefault(job.path.name, lambda: "unknown")

    def state(self, job: JobFolder) -> State:
        return self._states[job.path.name]()

    def hindrance(self, job: JobFolder) -> Hindrance | None:
        return self._hindrances.get(job.path.name)

    def cancel(self, job: JobFolder) -> str:
        self.cancelled.append(job.name)
        return ""

    def close(self) -> None:
        pass

    def _run(self, job: JobFolder, how: str) -> None:
        if how == "cancelled" or not job.take():
            return
        asked = job.asked()
        self.begun[asked.parameters["p"]] += 1
        self.commands[" ".join(asked.command)] += 1
        if how == "lost":
            return
        raw = self.folder / f"raw-{job.name}"
        raw.mkdir()
        rank_profile(0, 1).write(raw)
        if how == "fails":
            job.output.write_text("segmentation fault\n")
            job.end(Result(0.1, None, "heat was killed by SIGSEGV"))
            return
        job.end(
            Result(0.1, merge_run(raw, Path(asked.experiment), RunMetadata(asked.parameters, exit_code=0)).path.name)
        )


class Notes(Silent):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.outcomes: list[Outcome] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def ended(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


def go(folder: Path, behave: Mapping[int, str] | None = None) -> tuple[Stand, Notes]:
    campaign = declare(folder)
    assert campaign.scheduler is not None
    stand, notes = Stand(campaign.scheduler, folder, behave), Notes()
    run_campaign(campaign, notes, execution=Scheduled(stand, silent=0.3, patience=0.5, look=0.01))
    return stand, notes


def complete(folder: Path) -> Counter[float]:
    runs, _ = scan_runs(folder / "heat")
    return Counter(run.metadata.parameters["p"] for run in runs if run.metadata.complete)


def test_all_points_with_their_ranks_and_no_more_at_once_than_allowed(tmp_path: Path) -> None:
    stand, notes = go(tmp_path)
    assert sorted(stand.ranks) == [1, 1, 2, 2, 4, 4]
    assert stand.most <= 2
    assert complete(tmp_path) == {1: 2, 2: 2, 4: 2}
    assert stand.commands == {f"mpirun -n {p} ./heat {repetition}": 1 for p in (1, 2, 4) for repetition in (1, 2)}
    assert not any(outcome.error for outcome in notes.outcomes)
    assert not list(unsettled(tmp_path / "heat"))


@pytest.mark.parametrize("how", ["doubled", "forgotten", "silent"])
def test_every_run_is_measured_once(tmp_path: Path, how: str) -> None:
    """A job that begins twice, one that the scheduler loses, and one that it only accepts at the second attempt."""
    stand, notes = go(tmp_path, {2: how})
    assert complete(tmp_path) == {1: 2, 2: 2, 4: 2}
    assert stand.begun == {1: 2, 2: 2, 4: 2}
    assert not any(outcome.error for outcome in notes.outcomes)
    assert any("submitting it again" in note or "retrying" in note for note in notes.notes) == (how != "doubled")


@pytest.mark.parametrize(
    ("how", "message"),
    [("lost", "job 2 ended without a result: its time limit"), ("fails", "heat was killed by SIGSEGV")],
)
def test_failures_name_the_output_and_are_tried_again(tmp_path: Path, how: str, message: str) -> None:
    _, notes = go(tmp_path, {2: how})
    (failed,) = (outcome for outcome in notes.outcomes if outcome.error)
    assert message in failed.error
    assert "output.txt" in failed.error
    assert sum(complete(tmp_path).values()) == 5
    stand, notes = go(tmp_path)
    assert sum(stand.begun.values()) == 1
    assert complete(tmp_path) == {1: 2, 2: 2, 4: 2}


@needs("psij-python")
def test_a_job_that_cannot_begin_is_told_once_with_the_reason(tmp_path: Path) -> None:
    held = "waits: JobHeldAdmin"
    stand, notes = go(tmp_path, {1: held, 3: held, 4: "waits: ReqNodeNotAvail, UnavailableNodes:n[1-3]"})
    told = [note for note in notes.notes if "does not begin" in note]
    assert [note.split(";")[0] for note in told] == [
        "job 1, p=1 (repetition 1), does not begin (Slurm: JobHeldAdmin)",
        "job 4, p=1 (repetition 2), does not begin (Slurm: ReqNodeNotAvail, UnavailableNodes:n[1-3])",
    ]
    assert all("quipu campaign --cancel" in note for note in told)
    assert not stand.cancelled


@needs("psij-python")
def test_a_job_that_the_scheduler_will_never_begin_is_not_waited_for(tmp_path: Path) -> None:
    stand, notes = go(tmp_path, {2: "waits: DependencyNeverSatisfied"})
    (failed,) = (outcome for outcome in notes.outcomes if outcome.error)
    assert failed.error.startswith(
        "job 2 can never begin (Slurm: DependencyNeverSatisfied); it was cancelled; the job on"
    )
    assert len(stand.cancelled) == 1
    assert sum(complete(tmp_path).values()) == 5
    assert not list(unsettled(tmp_path / "heat"))


@needs("psij-python")
def test_reasons_of_slurm_of_several_words_are_read() -> None:
    """psij took them for damage, and then knew nothing of any job."""
    from quipu.agent.campaign.jobs.slurm import Slurm

    slurm = Slurm()
    lines = ["7 PD (ReqNodeNotAvail, UnavailableNodes:a b)", "8 R None", "9 F RaisedSignal:53(Real-time signal 19)"]
    states = slurm.parse_status_output(0, "\n".join([*lines, "10 PD (Priority)", "11 XX", ""]))
    assert {native: str(status.state) for native, status in states.items()} == {
        "7": "QUEUED",
        "8": "ACTIVE",
        "9": "FAILED",
        "10": "QUEUED",
        "11": "QUEUED",
    }
    assert slurm.reasons == {"7": "ReqNodeNotAvail, UnavailableNodes:a b", "10": "Priority"}


@needs("psij-python")
@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("", ""),
        ("None", ""),
        ("Priority", ""),
        ("Dependency", ""),
        ("PartitionTimeLimit", "change queue, minutes"),
        ("PartitionNodeLimit", "change queue, minutes"),
        ("Nodes required for job are DOWN, DRAINED or reserved", "sinfo -R"),
        ("launch failed requeued held", "scontrol release 7"),
        ("QOSMaxCpuPerJobLimit", "than a job may"),
        ("AssocMaxWallDurationPerJobLimit", "than a job may"),
        ("QOSMaxJobsPerUserLimit", "when other jobs use less"),
        ("AssocGrpCPUMinutesLimit", "has used its computing time"),
        ("SomethingNew", "scontrol show job 7"),
    ],
)
def test_what_reasons_mean(reason: str, words: str) -> None:
    from quipu.agent.campaign.jobs.slurm import hindrance_of

    found = hindrance_of("7", reason)
    assert (found is None) == (not words)
    if found is not None:
        assert words in found.advice and not found.never


def test_jobs_that_ended_while_nobody_waited_count_once(tmp_path: Path) -> None:
    """Each was a complete run on the disk and a job that ended, in place of which another run was left out."""
    campaign = declare(tmp_path, TEXT.replace("p = [1, 2, 4]", "p = [1]").replace("repetitions = 2", "repetitions = 3"))
    assert campaign.scheduler is not None
    stand, notes = Stand(campaign.scheduler, tmp_path), Notes()
    job = JobFolder.make(campaign.directory, Asked((1,), {"p": 1}, 1, campaign.command_at((1,)), "", ""))
    (tmp_path / "raw").mkdir()
    rank_profile(0, 1).write(tmp_path / "raw")
    job.end(Result(0.1, merge_run(tmp_path / "raw", campaign.directory, RunMetadata({"p": 1}, exit_code=0)).path.name))
    result = run_campaign(campaign, notes, execution=Scheduled(stand, silent=0.3, patience=0.5, look=0.01))
    assert (result.finished, len(notes.outcomes), result.complete) == (1, 2, 3)
    assert complete(tmp_path) == {1: 3}


def test_a_campaign_that_is_stopped_says_that_its_jobs_go_on(tmp_path: Path) -> None:
    class Stopped(Stand):
        def state(self, job: JobFolder) -> State:
            raise KeyboardInterrupt

    campaign = declare(tmp_path)
    assert campaign.scheduler is not None
    stand = Stopped(campaign.scheduler, tmp_path, {1: "forgotten", 2: "forgotten"})
    notes = Notes()
    result = run_campaign(campaign, notes, execution=Scheduled(stand, look=0.01))
    assert (result.complete, result.failed, result.not_started, result.exit_code) == (0, (), 0, 130)
    assert "2 submitted jobs continue and 4 runs were not submitted; repeat the" in notes.outcomes[0].error
    ProgressLines().ended(notes.outcomes[0])


def test_a_scheduler_that_refuses_is_an_error_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(QuipuError, match="slurm: refused"):
        go(tmp_path, {1: "refused"})
    with pytest.raises(QuipuError, match="slurm: silent"):
        go(tmp_path, dict.fromkeys(range(1, 1000), "silent"))
    assert not list(unsettled(tmp_path / "heat"))


def test_only_one_can_claim_a_job(tmp_path: Path) -> None:
    (tmp_path / "job-1").mkdir()
    taken: list[bool] = []
    takers = [threading.Thread(target=lambda: taken.append(JobFolder(tmp_path / "job-1").take())) for _ in range(20)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert sorted(taken) == [False] * 19 + [True]
    (tmp_path / "job-1" / "claim.json").write_text("{")
    assert JobFolder(tmp_path / "job-1").claim() == Claim("", 0)


@pytest.mark.parametrize("name", ["$(touch x)", "`id`", 'a"b', "a\nb"])
def test_a_folder_whose_name_a_job_would_interpret_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EnvironmentProblem, match="which the shell of a batch job would interpret"):
        scheduler_queue(SchedulerPlan("slurm", 10.0), tmp_path / name)
