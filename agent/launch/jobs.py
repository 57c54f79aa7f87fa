# SPDX-License-Identifier: Apache-2.0
"""Read the records of launchers that the launched command itself started (nested.py writes them)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from quipu.modeling.documents import Count, typed

from ..archive.metadata import RunMetadata
from ..archive.run_json import read_json


@dataclass(frozen=True)
class LaunchedJob:
    """A launcher that the command started: the content of job-<number>.json.

    ranks: number of processes; None if unknown. settings: environment variables that Quipu added for the MPI. refused:
    why its processes are not measured as ranks; empty if they are.
    """

    family: str
    version: str
    ranks: Count | None
    argv: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    refused: str = ""


def jobs_of(raw: Path) -> list[LaunchedJob]:
    """Return the records of the launchers that the command started, in the order of their start.

    Raises FormatError for an invalid record.
    """
    paths = sorted(raw.glob("job-*.json"), key=lambda path: (len(path.name), path.name))
    return [typed(read_json(path), LaunchedJob, path) for path in paths]


def with_jobs(metadata: RunMetadata, jobs: Sequence[LaunchedJob]) -> RunMetadata:
    """Return the metadata of a run, completed with the launchers that its command started.

    The run becomes partial if the processes of one launcher were not measured as ranks.
    """
    refused = [job for job in jobs if job.refused]
    if refused:
        texts = dict.fromkeys(
            f"{job.argv[0]}: its processes are not measured as ranks: {job.refused}" for job in refused
        )
        launcher = {**metadata.launcher, "refused": [list(job.argv) for job in refused]}
        metadata = replace(metadata, partial=True, launcher=launcher, problems=(*metadata.problems, *texts))
    jobs = [job for job in jobs if not job.refused]
    if not jobs:
        return metadata
    ranks = [job.ranks for job in jobs]
    most = max((number for number in ranks if number is not None), default=None) if None not in ranks else None
    facts = {"family": jobs[-1].family, "version": jobs[-1].version, "ranks": most}
    settings = {name: value for job in jobs for name, value in job.settings.items()}
    note = f"the command launched {len(jobs)} jobs: the values of ranks with the same number are added"
    return replace(
        metadata,
        launcher={**metadata.launcher, **facts, "jobs": [list(job.argv) for job in jobs]},
        environment_added={**metadata.environment_added, **settings},
        problems=(*metadata.problems, note) if len(jobs) > 1 else metadata.problems,
    )
