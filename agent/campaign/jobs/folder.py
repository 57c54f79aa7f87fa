# SPDX-License-Identifier: Apache-2.0
"""The folder of a job in its experiment: the run to make, the process that runs it, and the result.

A job that is submitted twice, is requeued, or begins after its campaign has given it up must not measure a second time.
A process must therefore claim the job before it runs the job or gives it up. The claim is an atomic link, so only one
process succeeds. The state in the scheduler is only a hint; the claim and the result are authoritative.
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
"""The environment variable with the job number, for each scheduler."""


@dataclass(frozen=True)
class Asked:
    """task.json: the run of a job, and its options (fields of `LaunchOptions`)."""

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
    """The process that runs a job: host, process id and job number. given_up: the campaign gave up the job instead."""

    host: str
    pid: Count
    native: str = ""
    given_up: bool = False


@dataclass(frozen=True)
class Result:
    """How the run of a job ended: its archive, or the error."""

    seconds: Real
    archive: str | None = None
    error: str = ""


class JobFolder:
    """The folder of one job. Each of its files is written once, atomically."""

    def __init__(self, path: Path) -> None:
        """Use the existing folder `path`, which contains task.json."""
        self.path = path

    @classmethod
    def make(cls, experiment: Path, asked: Asked) -> JobFolder:
        """Create the folder with task.json, before the job is submitted. Raises OSError."""
        path = experiment / FOLDER / f"{_WAITING}{uuid.uuid4().hex[:12]}"
        path.mkdir(parents=True)
        write_json(path / "task.json", asdict(asked), durable=True)
        return cls(path)

    @property
    def name(self) -> str:
        """Return the name of the job in the scheduler."""
        return f"quipu-{self.path.name.removeprefix(_WAITING)}"

    def asked(self) -> Asked:
        """Return the run to make. Raises FormatError."""
        path = self.path / "task.json"
        return typed(read_json(path), Asked, path)

    def submitted(self, native: str) -> None:
        """Store the job number of the scheduler. Raises OSError."""
        write_json(self.path / "submitted.json", {"native": native}, durable=True)

    def native(self) -> str:
        """Return the job number of the scheduler; empty if it was not stored."""
        with contextlib.suppress(FormatError):
            native = read_json(self.path / "submitted.json").get("native", "")
            return native if isinstance(native, str) else ""
        claim = self.claim()
        return claim.native if claim is not None else ""

    def take(self, given_up: bool = False) -> bool:
        """Claim the job for this process; return False if it is already claimed. Raises OSError."""
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
        """Return the claim of the job, None without claim. An unreadable claim counts as a claim."""
        path = self.path / "claim.json"
        if not path.exists():
            return None
        try:
            return typed(read_json(path), Claim, path)
        except FormatError:
            return Claim("", 0)

    def beat(self) -> None:
        """Write a heartbeat of the run. Raises OSError."""
        os.utime(self.path / "claim.json")

    def last_beat(self) -> int:
        """Return the time of the latest heartbeat by the clock of the file system (ns); 0 if there was none."""
        try:
            return (self.path / "claim.json").stat().st_mtime_ns
        except OSError:
            return 0

    def end(self, result: Result) -> None:
        """Store the result of the run. Raises OSError."""
        write_json(self.path / "result.json", asdict(result), durable=True)

    def result(self) -> Result | None:
        """Return the result of the run, None before its end. Raises FormatError."""
        path = self.path / "result.json"
        return typed(read_json(path), Result, path) if path.exists() else None

    @property
    def output(self) -> Path:
        """Return the output file of the job; after a failure, `settle` keeps it."""
        return self.path / "output.txt"

    def settle(self, failed: bool) -> Path:
        """Remove the folder after the campaign has read the result; keep the output of a failed job. Return it."""
        if not failed:
            shutil.rmtree(self.path, ignore_errors=True)
            return self.path
        self.path = self.path.rename(self.path.with_name(_FAILED + self.path.name.removeprefix(_WAITING)))
        return self.path


def unsettled(experiment: Path) -> Iterator[JobFolder]:
    """Yield the jobs of an experiment whose result no campaign has read; remove folders without task.json."""
    for path in sorted((experiment / FOLDER).glob(f"{_WAITING}*")):
        if (path / "task.json").exists():
            yield JobFolder(path)
        else:  # the campaign was killed in `make`: the job was not submitted
            shutil.rmtree(path, ignore_errors=True)
