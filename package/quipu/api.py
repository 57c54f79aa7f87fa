# SPDX-License-Identifier: Apache-2.0
"""The functions of `import quipu`: measure, read, model, predict.

Each function imports its modules when it is called. A program therefore loads only the modules that it uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from quipu.agent.archive.run import RunArchive
    from quipu.agent.campaign.campaign import CampaignResult
    from quipu.modeling.evaluation import Evaluation
    from quipu.modeling.experiment import Experiment
    from quipu.modeling.models import Analysis

OverRanks = Literal["mean", "max", "sum"]


def open(path: str | PathLike[str], over_ranks: OverRanks = "mean") -> RunArchive | Experiment:
    """Read a run (a folder with `run.json`) or an experiment.

    Experiments are folders of runs, files of Extra-P in any of its formats, and profiles of other tools.

    over_ranks: how to combine the values of the ranks in an experiment ("mean", "max" or "sum"). A single run keeps the
    values of every rank.

    Raises FormatError with the name of an unreadable file, MeasurementError for a folder without a complete run, and
    UsageError if the values in a file are already combined in another way.
    """
    from pathlib import Path

    from quipu.agent.load.measurements import is_run, load

    source = Path(path)
    if source.is_dir() and is_run(source):
        from quipu.agent.archive.read import read_archive

        return read_archive(source)
    return load(source, over_ranks)


def run(
    command: str | Sequence[str],
    parameters: Mapping[str, float] | None = None,
    output: str | PathLike[str] = "quipu-runs",
    *,
    counts: bool = False,
    counters: str | None = None,
    functions: bool = False,
    python: bool = False,
    memory: bool = False,
    files: bool = False,
    filter: str | PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> RunArchive:
    """Measure one run of a program, store the run in the folder `output`, and return it.

    Another call with the same arguments makes the next repetition.

    command: the launch command, such as "mpirun -n 4 ./heat 64", or a list of its words. It runs without a shell.
    parameters: values of the parameters by name. output: the folder of the experiment.

    environment: further environment variables for the program. timeout: seconds after which the program is stopped;
    None: no limit. counts, counters, functions, python, memory, files, filter: the options of `quipu run` with these
    names.

    Raises MeasurementError if the program cannot be started or measured. Raises RunFailed if the program fails; the
    attribute `archive` of this error contains the partial measurement.
    """
    import shlex
    from pathlib import Path

    from quipu.agent.campaign.repetition import LaunchOptions
    from quipu.agent.campaign.repetition import run as launch
    from quipu.modeling.errors import UsageError

    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError as error:
        raise UsageError(f"command {command!r}: {error}") from error
    if not words:
        raise UsageError("command: is empty; give the launch command, such as 'mpirun -n 4 ./app'")
    if counts and (counters or functions):
        raise UsageError("counts: such a run reads no clock; use counters and functions in a run without counts")
    if filter is not None:
        from quipu.report.formats import read_filter

        read_filter(Path(filter))  # an invalid filter is reported here instead of in every rank
    options = LaunchOptions(
        clock="none" if counts else None,
        filter_file=None if filter is None else Path(filter),
        environment=dict(environment or {}),
        timeout=timeout,
        counters=counters,
        functions=functions,
        python=python,
        memory=memory,
        files=files,
        warns=True,
    )
    return launch(words, _parameters(parameters or {}), None, Path(output), options)


def campaign(
    file: str | PathLike[str],
    *,
    quiet: bool = False,
    stop_on_error: bool = False,
    keep_going: bool = False,
    keep_old: bool = False,
) -> CampaignResult:
    """Run all configurations of a campaign file that are not complete yet, and return the outcome of each run.

    Prints the progress on stderr; with `quiet`, prints errors only. A failed run does not stop the other runs, except
    with `stop_on_error`. The attribute `failed` of the result lists the failed runs. keep_going, keep_old: the options
    of `quipu campaign` with these names.

    Raises FormatError for an error in the file, MeasurementError if the build fails or another campaign uses the
    folder, and EnvironmentProblem if a scheduler or a part of Quipu is missing.
    """
    from pathlib import Path

    from quipu.agent.campaign.declared_run import run_declared
    from quipu.agent.campaign.file import read_campaign
    from quipu.agent.campaign.progress_lines import ProgressLines
    from quipu.modeling.errors import UsageError

    if stop_on_error and keep_going:
        raise UsageError("stop_on_error and keep_going exclude each other")
    progress = ProgressLines(errors_only=quiet)
    declared = read_campaign(Path(file))
    return run_declared(declared, progress, stop_on_failure=stop_on_error, keep_going=keep_going, keep_old=keep_old)


def model(source: Experiment | str | PathLike[str], over_ranks: OverRanks | None = None) -> Analysis:
    """Return the models of all metrics of all call paths of an experiment.

    source: an experiment from `open`, the path of an experiment, or a file of `quipu model -o`. over_ranks: for a path,
    how to combine the values of the ranks (default "mean"). Models are stored in the cache of the user, so that a
    second call is fast.

    Raises ModelingError if there is nothing to model, UsageError for a single run, and for a path the errors of `open`.
    """
    return _modeled(source, over_ranks)[0]


def predict(
    source: Analysis | Experiment | str | PathLike[str],
    at: Mapping[str, float] | None = None,
    metric: str = "time",
    over_ranks: OverRanks | None = None,
) -> Evaluation:
    """Return the predictions of one metric for all call paths at a point, measured or not.

    source: a result of `model` or `open`, or a path as for `model`. over_ranks: as for `model`. metric: name of the
    metric.

    at: the value of each parameter by name. Default: the target that the campaign file of the experiment declares;
    `source` must then be a path.

    Raises UsageError for a point that does not fit the experiment, ModelingError if there are no models of the metric,
    and the errors of `model`.
    """
    from pathlib import Path

    from quipu.agent.load.measurements import ranks_of, target_of
    from quipu.agent.load.point import checked_point
    from quipu.modeling.evaluation import evaluate

    if at is None:
        at = target_of(Path(source)) if isinstance(source, str | PathLike) else {}
    analysis, measured = _modeled(source, over_ranks, (metric,))
    zero = [name for name, (low, _) in zip(analysis.parameters, analysis.ranges, strict=True) if low <= 0]
    point = checked_point("at", _parameters(at), analysis.parameters, False, zero, ranks_of(analysis, measured))
    return evaluate(analysis, point, metric)


def _modeled(
    source: object, over_ranks: OverRanks | None, metrics: Sequence[str] = ()
) -> tuple[Analysis, Experiment | None]:
    """Return the models of a source, and the measurements to which the models were fitted.

    The measurements are None if the source contains only models. metrics: for a path, the metrics to model; empty: all
    metrics. Raises UsageError for a source of another type.
    """
    from pathlib import Path

    from quipu.agent.load.kept_models import analyze_once
    from quipu.agent.load.measurements import load_both
    from quipu.modeling.errors import UsageError
    from quipu.modeling.experiment import Experiment
    from quipu.modeling.models import Analysis

    if isinstance(source, str | PathLike):
        return load_both(Path(source), over_ranks or "mean", metrics=metrics)
    if over_ranks is not None:
        raise UsageError("over_ranks: these values are combined already; give it to quipu.open")
    if isinstance(source, Experiment):
        return analyze_once(source), source
    if isinstance(source, Analysis):
        return source, None
    what = type(source).__name__
    raise UsageError(f"a {what} cannot be modeled: give an experiment, such as quipu.open(FOLDER) of several runs")


def _parameters(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values of parameters as Python numbers. The values may be NumPy numbers.

    Raises UsageError with the name of an invalid parameter or value.
    """
    from numbers import Real

    from quipu.modeling.documents import is_parameter
    from quipu.modeling.errors import UsageError

    for name, value in values.items():
        if not is_parameter(name):
            raise UsageError(f"{name!r} is not a valid name of a parameter: use letters, digits and _")
        if not isinstance(value, Real) or isinstance(value, bool) or not abs(value) <= 1e300:
            raise UsageError(f"parameter {name}: {value!r} is not a finite number up to 1e300")
    return {name: int(value) if float(value).is_integer() else float(value) for name, value in values.items()}
