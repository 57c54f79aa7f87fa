# SPDX-License-Identifier: Apache-2.0
"""The folder of a job in its experiment: the run to make, the process that makes the run, and the result.

A job must not measure twice if it is submitted twice, is requeued, or begins after its campaign has given it up. A
process must therefore claim the job before it makes the run or gives the job up. The claim is an atomic hard link, so
only one process succeeds. The claim and the result are authoritative; the state in the scheduler is only a hint.

Files: task.json (`Asked`), submitted.json (the job number), claim.json (`Claim`), result.json (`Result`), output.txt.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from quipu.modeling.documents import Count, Real, typed
from quipu.modeling.errors import FormatError

from ...archive.run_json import read_json, write_json
from ..repetition import LaunchOptions

FOLDER = ".jobs"
_WAITING, _FAILED = "job-", "failed-"
JOB_VARIABLES = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID")
"""The environment variables in which the schedulers pass the job number to a job."""


@dataclass(frozen=True)
class Asked:
    """The content of task.json: the run of a job.

    experiment: the folder for the archive. folder: the working folder of the program. The fields from `folder` on are
    fields of `LaunchOptions`.
    """

    point: tuple[Real, ...]
    parameters: dict[str, Real]
    repetition: Count
    command: tuple[str, ...]
    experiment: str
    folder: str
    environment: dict[str, str] = field(default_factory=dict)
    clock: str | None = None
    filter_file: str | None = None
    rates: str | None = None
    timeout: Real | None = None
    template: dict[str, str] = field(default_factory=dict)

    def options(self) -> LaunchOptions:
        """Return the launch options."""
        return LaunchOptions(
            clock=self.clock,
            filter_file=Path(self.filter_file) if self.filter_file else None,
            rates=Path(self.rates) if self.rates else None,
            environment=self.environment,
            timeout=self.timeout,
            folder=Path(self.folder),
            template=self.template,
        )


@dataclass(frozen=True)
class Claim:
    """The process that claimed a job.

    native: number of the job in the scheduler, "" outside of a job. given_up: the process belongs to a campaign that
    has given the job up, so nobody makes the run.
    """

    host: str
    pid: Count
    native: str = ""
    given_up: bool = False


@dataclass(frozen=True)
class Result:
    """The end of a run. seconds: elapsed time. archive: name of its folder in the experiment, None if there is none.

    error: "" after success. A failed run may have an archive, too.
    """

    seconds: Real
    archive: str | None = None
    error: str = ""


class JobFolder:
    """The folder of one job. Each JSON file in it is written once, atomically."""

    def __init__(self, path: Path) -> None:
        """Use the existing folder `path`, which contains task.json."""
        self.path = path

    @classmethod
    def make(cls, experiment: Path, asked: Asked) -> JobFolder:
        """Create the folder with task.json; the caller then submits the job. Raises OSError."""
        path = experiment / FOLDER / f"{_WAITING}{uuid.uuid4().hex[:12]}"
        path.mkdir(parents=True)
        write_json(path / "task.json", asdict(asked), durable=True)
        return cls(path)

    @property
    def name(self) -> str:
        """Return the name of the job in the scheduler."""
        return f"quipu-{self.path.name.removeprefix(_WAITING)}"

    def asked(self) -> Asked:
        """Return the run to make. Raises FormatError if task.json is invalid."""
        path = self.path / "task.json"
        return typed(read_json(path), Asked, path)

    def submitted(self, native: str) -> None:
        """Store the job number of the scheduler. Raises OSError."""
        write_json(self.path / "submitted.json", {"native": native}, durable=True)

    def native(self) -> str:
        """Return the number of the job in the scheduler; "" if neither `submitted` nor the claim stored it."""
        with contextlib.suppress(FormatError):
            native = read_json(self.path / "submitted.json").get("native", "")
            return native if isinstance(native, str) else ""
        claim = self.claim()
        return claim.native if claim is not None else ""

    def take(self, given_up: bool = False) -> bool:
        """Claim the job for this process; return False if it is already claimed. Raises OSError.

        given_up: claim the job so that no process makes the run.
        """
        native = next((os.environ[name] for name in JOB_VARIABLES if name in os.environ), "")
        claim = Claim(socket.gethostname(), os.getpid(), native, given_up)
        part = self.path / f".claim-{uuid.uuid4().hex[:12]}"
        write_json(part, asdict(claim), durable=True)
        try:
            os.link(part, self.path / "claim.json")
        except FileExistsError:
            return False
        finally:
            part.unlink()
        return True

    def claim(self) -> Claim | None:
        """Return the claim of the job; None if it is not claimed.

        An unreadable claim.json also counts: the result is then a claim with host "" and process id 0.
        """
        path = self.path / "claim.json"
        if not path.exists():
            return None
        try:
            return typed(read_json(path), Claim, path)
        except FormatError:
            return Claim("", 0)

    def beat(self) -> None:
        """Record that the run is alive: set the modification time of claim.json to now. Raises OSError."""
        os.utime(self.path / "claim.json")

    def last_beat(self) -> int:
        """Return the time of the latest heartbeat (modification time of claim.json, ns); 0 if there is no claim."""
        try:
            return (self.path / "claim.json").stat().st_mtime_ns
        except OSError:
            return 0

    def end(self, result: Result) -> None:
        """Store the result of the run. Raises OSError."""
        write_json(self.path / "result.json", asdict(result), durable=True)

    def result(self) -> Result | None:
        """Return the result of the run; None before its end. Raises FormatError if result.json is invalid."""
        path = self.path / "result.json"
        return typed(read_json(path), Result, path) if path.exists() else None

    @property
    def output(self) -> Path:
        """Return the path of the file with the output of the job. After a failure, `settle` keeps the file."""
        return self.path / "output.txt"

    def settle(self, failed: bool) -> Path:
        """End the work with a job whose result was read, or that was given up; return the path of its folder.

        The folder of a failed job is renamed and kept, because it contains the output. Otherwise it is removed.
        """
        if not failed:
            shutil.rmtree(self.path, ignore_errors=True)
            return self.path
        self.path = self.path.rename(self.path.with_name(_FAILED + self.path.name.removeprefix(_WAITING)))
        return self.path


def unsettled(experiment: Path) -> Iterator[JobFolder]:
    """Yield the jobs of an experiment for which `settle` was not called. Remove folders without task.json."""
    for path in sorted((experiment / FOLDER).glob(f"{_WAITING}*")):
        if (path / "task.json").exists():
            yield JobFolder(path)
        else:  # the campaign was killed in `make`, before it submitted the job
            shutil.rmtree(path, ignore_errors=True)
