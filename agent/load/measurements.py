# SPDX-License-Identifier: Apache-2.0
"""Load experiments of Quipu and of other tools, and files of models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quipu.modeling.errors import FormatError, UsageError

from ..catalogue import HOLDS_MODELS, NO_SUCH_EXPERIMENT, NO_SUCH_FOLDER, SAMPLED_EXCESS

if TYPE_CHECKING:
    from quipu.modeling.analysis import Analysis
    from quipu.modeling.experiment import Experiment
    from quipu.modeling.machine import Machine
    from quipu.modeling.pmnf.options import Options
    from quipu.report.views import Over

    from ..compare.sides import Side
    from ..merge.experiment import StoredRun

MADE = frozenset(("effort_excess", "delay_caused"))
"""Metrics that are not stored in runs. They are computed from the values of all ranks, only if they are requested."""


def load_both(
    source: Path,
    over_ranks: Over = "mean",
    options: Options | None = None,
    metrics: Collection[str] = (),
) -> tuple[Analysis, Experiment | None]:
    """Return models and, if available, the measurements that they were fitted to.

    source: an experiment as for `load`, or a file of models that `quipu model -o` wrote. over_ranks, metrics: as for
    `load`. options: how to model an experiment (None: the default). Raises FormatError with the path of a wrong file,
    UsageError if options are given for a file of models, and ModelingError if the experiment is empty.
    """
    if _holds_models(source):
        from quipu.modeling.document import from_document

        from ..archive.run_json import read_json

        if options is not None:
            raise UsageError(f"{source} contains models that are already fitted: --selector needs measurements")
        return from_document(read_json(source), source), None
    from quipu.modeling.pmnf.options import DEFAULT

    from .kept_models import analyze_once

    experiment = load(source, over_ranks, metrics)
    return analyze_once(experiment, options or DEFAULT), experiment


def ranks_of(analysis: Analysis, measured: Experiment | None) -> set[str]:
    """Return the parameters whose value is the number of ranks. The arguments are the result of `load_both`."""
    from quipu.modeling.priors.rank_parameters import called_ranks, rank_parameters

    return called_ranks(analysis.parameters, analysis.ranges) if measured is None else rank_parameters(measured)


def read_machine(path: Path) -> Machine:
    """Return the machine in a file that `quipu machine` wrote. Raises FormatError with the path and the reason."""
    from quipu.modeling.machine import from_document

    from ..archive.run_json import read_json

    return from_document(read_json(path), path)


def is_run(folder: Path) -> bool:
    """Return whether a folder contains one run (true) or an experiment (false). Raises FormatError if it is missing."""
    if not folder.exists():
        raise FormatError(folder, NO_SUCH_FOLDER())
    if not folder.is_dir():
        raise FormatError(folder, "is a file: give the folder of a run or of an experiment")
    from ..archive.checksums import is_archive

    return is_archive(folder)


def load(source: Path, over_ranks: Over = "mean", metrics: Collection[str] = ()) -> Experiment:
    """Return an experiment from a folder of runs, a file of Extra-P, or profiles of other tools.

    over_ranks: how to combine the values of the ranks. metrics: names of the requested metrics; metrics in `MADE` are
    computed only if they are requested. Raises FormatError if `source` is no experiment, MeasurementError if
    `delay_caused` is requested and no run has the values of each rank, and the errors of `load_experiment` and
    `read_experiment`.
    """
    if _holds_models(source):
        raise FormatError(source, HOLDS_MODELS())
    experiment = _measurements(source, over_ranks)
    if not set(metrics) & MADE - set(experiment.metrics):
        return experiment
    from quipu.modeling.effort_excess import with_effort_excess

    from ..merge.experiment import find_runs
    from .delay_caused import with_delay_caused

    if "effort_excess" in metrics:
        experiment = with_effort_excess(experiment)
    if is_of_others(source):
        return experiment
    runs = find_runs(source)
    if "effort_excess" in metrics:
        experiment = replace(experiment, notes=(*experiment.notes, *_sampled(runs)))
    if "delay_caused" in metrics:
        experiment = with_delay_caused(experiment, runs)
    return experiment


def _sampled(runs: Sequence[StoredRun]) -> list[str]:
    """Return a note if only a part of the collective operations was probed: `effort_excess` is then an estimate."""
    from quipu.report.text import percent

    probed, all_calls = (
        sum(float(run.metadata.overhead.get(name, 0.0)) for run in runs) for name in ("probed", "collectives")
    )
    return [SAMPLED_EXCESS(part=percent(probed / all_calls))] if 0 < probed < all_calls else []


def load_side(source: Path, over_ranks: Over = "mean") -> Side:
    """Return one side of a comparison from a run, an experiment or a baseline. Raises the errors of `load`."""
    from ..compare.baseline import from_baseline, is_baseline
    from ..compare.sides import Side

    if source.is_file() and is_baseline(source):
        from ..archive.run_json import read_json

        return from_baseline(read_json(source), source)
    folder = source if source.is_dir() and not is_of_others(source) else None
    return Side(str(source), load(source, over_ranks), folder)


def _holds_models(source: Path) -> bool:
    from quipu.report.formats.detect import is_file_of_models

    return source.is_file() and is_file_of_models(source)


def _measurements(source: Path, over_ranks: Over) -> Experiment:
    from quipu.report.formats.detect import read_experiment

    from ..merge.experiment import load_experiment

    if not source.exists():
        raise FormatError(source, NO_SUCH_EXPERIMENT())
    if (source.name == "run.json" or source.suffix == ".parquet") and is_run(source.parent):
        raise FormatError(source, f"is a file of a run: give its folder, {source.parent}")
    if is_of_others(source):
        return read_experiment(source, over_ranks)
    _declare_again(source)
    return load_experiment(source, over_ranks)


def or_target(given: list[str], source: Path) -> list[str]:
    """Return the values that the user gave for a point (NAME=VALUE), or if there are none, the declared target."""
    return given or [f"{name}={value:.17g}" for name, value in target_of(source).items()]


def target_of(source: Path) -> Mapping[str, float]:
    """Return the target in the campaign file of an experiment, by parameter; empty if there is none."""
    if not source.is_dir() or is_of_others(source) or is_run(source):
        return {}
    from ..merge.declared import read_declared

    _declare_again(source)
    return read_declared(source).target


def _declare_again(folder: Path) -> None:
    """Copy grid and target from the campaign file to the experiment, if the file has changed since the last copy."""
    from ..merge.declared import FILE, read_declared, write_declared

    campaign = Path(read_declared(folder).campaign)
    try:
        changed = campaign.is_file() and campaign.stat().st_mtime_ns > (folder / FILE).stat().st_mtime_ns
    except OSError:
        return
    if changed:
        from ..campaign.file import read_campaign

        try:
            now = read_campaign(campaign)
            write_declared(folder, campaign, now.grid, now.target)
        except OSError:
            return  # the folder may not be writable: use the stored grid and target


def is_of_others(source: Path) -> bool:
    """Return whether the measurements come from another tool: true for a file, and for folders of known other tools."""
    from quipu.report.formats.detect import is_folder_of_others

    return source.is_file() or is_folder_of_others(source)
