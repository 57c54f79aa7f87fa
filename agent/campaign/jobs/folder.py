# SPDX-License-Identifier: Apache-2.0
"""The folder of a job, below its experiment: what is to run, who runs it, how it ended.

A job that is submitted twice, is requeued, or begins after its campaign has given it up must not measure a second time.
So whoever wants to run a job, or to give it up, first claims it, which only one can: on every file system with atomic
links. What the scheduler says is only a hint; the claim and the result decide.
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
"""The environment variable in which each scheduler gives a job its number."""


@dataclass(frozen=True)
class Asked:
    """task.json: the run that a job is to do, and how to measure it (fields of `LaunchOptions`)."""

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
        """Return how to measure."""
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
    """Who runs a job: a process of a host, with the scheduler's number; given_up: nobody, by will of its campaign."""

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
    """One job. Its files are written once each, whole."""

    def __init__(self, path: Path) -> None:
        """`path` exists, with task.json in it."""
        self.path = path

    @classmethod
    def make(cls, experiment: Path, asked: Asked) -> JobFolder:
        """Write what a job is to do, before it is submitted. Raises OSError."""
        path = experiment / FOLDER / f"{_WAITING}{uuid.uuid4().hex[:12]}"
        path.mkdir(parents=True)
        write_json(path / "task.json", asdict(asked), durable=True)
        return cls(path)

    @property
    def name(self) -> str:
        """The name under which it is submitted."""
        return f"quipu-{self.path.name.removeprefix(_WAITING)}"

    def asked(self) -> Asked:
        """Return what is to run. Raises FormatError."""
        path = self.path / "task.json"
        return typed(read_json(path), Asked, path)

    def submitted(self, native: str) -> None:
        """Keep the scheduler's number. Raises OSError."""
        write_json(self.path / "submitted.json", {"native": native}, durable=True)

    def native(self) -> str:
        """Return the scheduler's number; empty if nobody could keep it."""
        with contextlib.suppress(FormatError):
            native = read_json(self.path / "submitted.json").get("native", "")
            return native if isinstance(native, str) else ""
        claim = self.claim()
        return claim.native if claim is not None else ""

    def take(self, given_up: bool = False) -> bool:
        """Claim it for this process; False if it is claimed already. Raises OSError."""
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
        """Return who claimed it, None if nobody. A claim that cannot be read is one."""
        path = self.path / "claim.json"
        if not path.exists():
            return None
        try:
            return typed(read_json(path), Claim, path)
        except FormatError:
            return Claim("", 0)

    def beat(self) -> None:
        """Show that the run is at work. Raises OSError."""
        os.utime(self.path / "claim.json")

    def last_beat(self) -> int:
        """Return when it last was at work, by the clock of the file system, in ns; 0 if it never was."""
        try:
            return (self.path / "claim.json").stat().st_mtime_ns
        except OSError:
            return 0

    def end(self, result: Result) -> None:
        """Keep how the run ended. Raises OSError."""
        write_json(self.path / "result.json", asdict(result), durable=True)

    def result(self) -> Result | None:
        """Return how the run ended, None if it has not. Raises FormatError."""
        path = self.path / "result.json"
        return typed(read_json(path), Result, path) if path.exists() else None

    @property
    def output(self) -> Path:
        """What the job wrote; after a failure it lies where `settle` has left it."""
        return self.path / "output.txt"

    def settle(self, failed: bool) -> Path:
        """Take note that the campaign knows the end; only what a failed job wrote is kept. Return its folder."""
        if not failed:
            shutil.rmtree(self.path, ignore_errors=True)
            return self.path
        self.path = self.path.rename(self.path.with_name(_FAILED + self.path.name.removeprefix(_WAITING)))
        return self.path


def unsettled(experiment: Path) -> Iterator[JobFolder]:
    """Yield the jobs of an experiment whose end no campaign knows yet; remove folders that hold no task."""
    for path in sorted((experiment / FOLDER).glob(f"{_WAITING}*")):
        if (path / "task.json").exists():
            yield JobFolder(path)
        else:  # the campaign ended between two lines of `make`: nothing was submitted
            shutil.rmtree(path, ignore_errors=True)
