# SPDX-License-Identifier: Apache-2.0
"""Campaigns on a real Slurm: jobs are cancelled, nodes drained, controllers killed; every run is measured once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE, until
from peers import needs
from quipu.agent.campaign.campaign import run_campaign
from quipu.agent.campaign.file import Campaign, read_campaign
from quipu.agent.campaign.jobs.queue import Queue, scheduler_queue
from quipu.agent.campaign.jobs.scheduled import Scheduled
from quipu.agent.campaign.task import Outcome, Silent, Task
from quipu.agent.merge.experiment import scan_runs
from quipu.modeling.errors import QuipuError
from slurm_cluster import Cluster

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="the daemons of Slurm start jobs as other users: only root may"),
    needs("Slurm", "psij-python"),
]

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
    FILE* log = fopen(argv[1], "a");
    fprintf(log, "%s\n", argv[2]);
    fclose(log);
    for (double left = atof(argv[2]) / 10; left > 0; left -= 0.1) usleep(100000);
    return argc != 3;
}
"""
TEXT = """
[experiment]
command = "./program began {n}"
repetitions = 1
[parameters]
n = [%s]
[scheduler]
name = "slurm"
minutes = 1
ranks = 1
poll = 0.5
at_once = 4
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="quipu-slurm-"))  # sockets have short paths
    found = Cluster(folder)
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(found.configuration)
    yield found
    if before is None:
        del os.environ["SLURM_CONF"]
    found.stop()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(PROGRAM)
    compiler = Path(sys.executable).parent / "quipu-cc"
    subprocess.run((compiler, "-O1", "program.c", "-o", "program"), cwd=folder, check=True)
    return folder / "program"


def declare(folder: Path, program: Path, values: str, more: str = "") -> Campaign:
    shutil.copy(program, folder / "program")
    path = folder / "waits.toml"
    path.write_text(TEXT % values + more)
    return read_campaign(path)


QUEUES: list[Queue] = []


@pytest.fixture(autouse=True)
def no_queue_is_left() -> Iterator[None]:
    yield
    while QUEUES:
        QUEUES.pop().close()


def scheduled(campaign: Campaign) -> Scheduled:
    assert campaign.scheduler is not None
    QUEUES.append(scheduler_queue(campaign.scheduler, campaign.directory))
    return Scheduled(QUEUES[-1], silent=3.0, patience=60.0, look=0.2)


class Meddler(Silent):
    """Does something to the cluster when so many jobs have been submitted; 0: when the first one has ended."""

    def __init__(self, cluster: Cluster, after: int, action: str) -> None:
        self.cluster, self.after, self.action = cluster, after, action
        self.submitted = self.endings = 0
        self.notes: list[str] = []

    def started(self, task: Task) -> None:
        self.submitted += 1
        if self.submitted == self.after:
            getattr(self, self.action)()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def ended(self, outcome: Outcome) -> None:
        self.endings += 1
        if self.after == 0 and self.endings == 1:
            getattr(self, self.action)()

    def nothing(self) -> None:
        pass

    def cancel(self) -> None:
        for job in self.cluster.jobs():
            self.cluster.cancel(job)

    def end_the_time(self) -> None:
        job = max(self.cluster.jobs(), key=int)  # the one before may be ending
        self.cluster.control("update", f"JobId={job}", "TimeLimit=0")

    def drain(self) -> None:
        self.cluster.control("update", f"NodeName={self.cluster.host}", "State=DRAIN", "Reason=test")
        resume = f"sleep 4; scontrol update NodeName={self.cluster.host} State=RESUME"
        subprocess.Popen(("sh", "-c", resume), env=self.cluster.environment)

    def kill_controller(self) -> None:
        self.cluster.save_jobs()  # jobs that the controller forgets: test_jobs.py
        self.cluster.kill_controller()
        self.cluster.restart_controller()


def complete(campaign: Campaign) -> list[float]:
    return sorted(run.metadata.parameters["n"] for run in scan_runs(campaign.directory)[0] if run.metadata.complete)


def begun(campaign: Campaign) -> Counter[str]:
    return Counter((campaign.path.parent / "began").read_text().split())


def without_jobs(cluster: Cluster) -> None:
    until(lambda: not cluster.jobs(), "no job is left", 0.1)


@pytest.mark.parametrize(
    ("action", "after", "waits"), [("nothing", 1, 1), ("drain", 2, 10), ("kill_controller", 4, 100)]
)
def test_every_run_is_measured_once_whatever_the_scheduler_does(
    tmp_path: Path, cluster: Cluster, program: Path, action: str, after: int, waits: int
) -> None:
    values = [1, 2, 3, 5 + waits, 6 + waits, 7 + waits]
    campaign = declare(tmp_path, program, ", ".join(map(str, values)))
    meddler = Meddler(cluster, after, action)
    result = run_campaign(campaign, meddler, execution=scheduled(campaign))
    assert not result.failed, (result.failed, meddler.notes)
    assert complete(campaign) == values
    assert set(begun(campaign).values()) == {1}
    assert not list((campaign.directory / ".jobs").glob("job-*"))


def test_cancelled_jobs_are_failures_and_done_by_the_next_invocation(
    tmp_path: Path, cluster: Cluster, program: Path
) -> None:
    campaign = declare(tmp_path, program, "1, 600, 700")
    result = run_campaign(campaign, Meddler(cluster, 0, "cancel"), execution=scheduled(campaign))
    assert sorted(outcome.task.point[0] for outcome in result.failed) == [600, 700]
    assert complete(campaign) == [1]
    faster = declare(tmp_path, program, "1, 2, 3")
    assert not run_campaign(faster, Silent(), execution=scheduled(faster)).failed
    assert complete(faster) == [1, 2, 3]


def test_a_job_beyond_its_time_is_a_failure_that_says_so(tmp_path: Path, cluster: Cluster, program: Path) -> None:
    campaign = declare(tmp_path, program, "1, 900")

    result = run_campaign(campaign, Meddler(cluster, 0, "end_the_time"), execution=scheduled(campaign))
    (failed,) = result.failed
    assert failed.task.point == (900,)
    assert "time limit" in failed.error or "SIGTERM" in failed.error
    assert complete(campaign) == [1]


def test_a_partition_that_does_not_exist_is_an_error_at_once(tmp_path: Path, cluster: Cluster, program: Path) -> None:
    campaign = declare(tmp_path, program, "1", 'queue = "nowhere"\n')
    with pytest.raises(QuipuError, match=r"slurm: .*invalid partition"):
        run_campaign(campaign, execution=scheduled(campaign))
    assert not complete(campaign)


def test_a_job_whose_dependency_failed_is_not_waited_for(tmp_path: Path, cluster: Cluster, program: Path) -> None:
    fails = ("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "false")
    first = subprocess.run(fails, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()
    without_jobs(cluster)
    campaign = declare(tmp_path, program, "1", f'options = {{dependency = "afterok:{first}"}}\n')
    (failed,) = run_campaign(campaign, execution=scheduled(campaign)).failed
    assert "can never begin (Slurm: DependencyNeverSatisfied); it was cancelled" in failed.error
    without_jobs(cluster)
    assert not complete(campaign)


def test_the_reason_of_a_job_that_may_wait_for_ever_is_told(tmp_path: Path, cluster: Cluster, program: Path) -> None:
    """Its reason has several words, which psij does not parse; the job still begins when the node is back."""

    class Resumes(Meddler):
        def note(self, text: str) -> None:
            super().note(text)
            self.cluster.control("update", f"NodeName={self.cluster.host}", "State=RESUME")

    cluster.control("update", f"NodeName={cluster.host}", "State=DRAIN", "Reason=test")
    campaign = declare(tmp_path, program, "1, 2", f'options = {{nodelist = "{cluster.host}"}}\n')
    meddler = Resumes(cluster, 1, "nothing")
    assert not run_campaign(campaign, meddler, execution=scheduled(campaign)).failed
    (note,) = meddler.notes
    assert "does not begin (Slurm: ReqNodeNotAvail" in note and "sinfo -R prints the reason" in note
    assert complete(campaign) == [1, 2]


INVOCATION = """
import sys
from pathlib import Path
from quipu.agent.campaign.campaign import run_campaign
from quipu.agent.campaign.file import read_campaign
from quipu.agent.campaign.jobs.queue import scheduler_queue
from quipu.agent.campaign.jobs.scheduled import Scheduled
campaign = read_campaign(Path(sys.argv[1]))
run_campaign(campaign, execution=Scheduled(scheduler_queue(campaign.scheduler, campaign.directory), look=0.2))
"""


@pytest.mark.parametrize("forgets", [False, True])
def test_a_campaign_that_is_killed_finds_its_jobs_again(
    tmp_path: Path, cluster: Cluster, program: Path, forgets: bool
) -> None:
    campaign = declare(tmp_path, program, "10, 11, 12, 13, 14, 15")
    killed = subprocess.Popen((sys.executable, "-c", INVOCATION, str(campaign.path)))
    jobs = campaign.directory / ".jobs"
    submitted: set[Path] = set()

    def three_are_submitted() -> bool:  # some may have ended, and their folders may be gone
        submitted.update(jobs.glob("job-*/submitted.json"))
        return len(submitted) >= 3 or killed.poll() is not None

    until(three_are_submitted, "three jobs are submitted")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    if forgets:  # as if it had been killed before it could write down the scheduler's number
        for path in jobs.glob("job-*/submitted.json"):
            path.unlink()
    result = run_campaign(campaign, Silent(), execution=scheduled(campaign))
    assert not result.failed, result.failed
    assert complete(campaign) == [10, 11, 12, 13, 14, 15]
    assert set(begun(campaign).values()) == {1}


def test_jobs_that_were_left_can_be_cancelled(tmp_path: Path, cluster: Cluster, program: Path) -> None:
    campaign = declare(tmp_path, program, "300, 400")

    class Interrupts(Silent):
        def started(self, task: Task) -> None:
            if task.point == (400,):
                raise KeyboardInterrupt

    without_jobs(cluster)
    result = run_campaign(campaign, Interrupts(), execution=scheduled(campaign))
    assert result.exit_code == 130
    assert "2 submitted jobs continue" in result.outcomes[-1].error
    assert scheduled(campaign).cancel_all(campaign.directory) == "2 jobs were cancelled"
    without_jobs(cluster)
    assert not complete(campaign)


def test_task_prolog_of_share_sets_where_libraries_are_kept(cluster: Cluster, tmp_path: Path) -> None:
    script = Path(__file__).resolve().parents[3] / "share" / "slurm" / "task_prolog.sh"
    shared = tmp_path / "cache"
    command = ["srun", "-n", "1", f"--task-prolog={script}", "sh", "-c", "echo $XDG_CACHE_HOME"]
    for given, wanted in (({}, str(shared)), ({"XDG_CACHE_HOME": "/mine"}, "/mine")):
        environment = {name: value for name, value in cluster.environment.items() if name != "XDG_CACHE_HOME"}
        environment |= {"QUIPU_SHARED_CACHE": str(shared), **given}
        done = subprocess.run(
            command, cwd="/tmp", env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.stdout.split() == [wanted], done.stderr
