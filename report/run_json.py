# SPDX-License-Identifier: Apache-2.0
"""Create the JSON documents of measured and planned runs. documents.toml describes their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .json_views import document_json, json_number
from .measured_run import MeasuredRun
from .node_use import node_totals


def runs_json(experiment: Path, runs: Sequence[MeasuredRun], error: str | None = None) -> dict[str, Any]:
    """Return the document of the runs of an experiment. error: why the last run failed; None if it did not fail."""
    return document_json("runs", str(experiment), runs=[_run(run) for run in runs], error=error)


def _run(run: MeasuredRun) -> dict[str, Any]:
    metadata = run.metadata
    return {
        "path": str(run.path),
        "parameters": _numbers(metadata.parameters),
        "repetition": metadata.repetition,
        "ranks": metadata.ranks,
        "call_paths": len(run.tree),
        "seconds": None if metadata.seconds is None else json_number(metadata.seconds),
        "exit_code": metadata.exit_code,
        "partial": metadata.partial,
        "problems": list(metadata.problems),
        "counts_only": metadata.counts_only,
        "node_counters": {name: json_number(value) for name, value in node_totals(metadata).items()},
    }


def task_json(
    parameters: Mapping[str, float],
    repetition: int,
    seconds: float,
    path: Path | None,
    error: str,
    counts: bool = False,
) -> dict[str, Any]:
    """Return a run of a campaign without reading its archive. Values that only the archive contains are None.

    seconds: duration of the run. path: folder of the run; None if it was not stored. error: empty after success.
    """
    return {
        "path": None if path is None else str(path),
        "parameters": _numbers(parameters),
        "repetition": repetition,
        "ranks": None,
        "call_paths": None,
        "seconds": json_number(seconds),
        "exit_code": None,
        "partial": bool(error) if path is not None else None,
        "problems": [error] if error else [],
        "counts_only": counts,
        "node_counters": {},
    }


def planned_json(
    parameters: Mapping[str, float], runs: int, counts: bool, seconds: float | None, at_least: bool
) -> dict[str, Any]:
    """Return the planned runs of one configuration.

    runs: their number. counts: whether they are count-only. seconds: estimated duration; None if unknown. at_least:
    whether the estimate is only a lower limit.
    """
    return {
        "parameters": _numbers(parameters),
        "runs": runs,
        "counts_only": counts,
        "seconds": None if seconds is None else json_number(seconds),
        "at_least": at_least,
    }


def _numbers(parameters: Mapping[str, float]) -> dict[str, float | int | None]:
    return {name: json_number(float(value)) for name, value in parameters.items()}
