# SPDX-License-Identifier: Apache-2.0
"""Measure how well times of public programs are predicted at two to four times the measured size.

    make bench-program_times [ARGS="--programs hpccg,minife --noise 0.75"]

benchmarks/data/times/ contains archives of measured programs: four sizes, one and two ranks, three repetitions each.
The target is a larger size with the same numbers of ranks. All predictions describe the program without the start and
the end of MPI. They are compared with the median of the runs at the target. `error` is |predicted / measured - 1|.

- quipu: `quipu predict`, which multiplies rates by known counts.
- formulas: formulas of time with the functions of effort, fitted to the same measurements, without rates.
- one_rate: for each call path, the instructions at the target × the time per instruction at the largest size. This is a
  baseline with known counts.
- extrap: Extra-P 4.2.5 on the time of each call path; sum over the call paths.

Programs that are marked *put aside* were not used to choose the constants of the model. `--constants` halves and
doubles each of these constants, and prints the effect. `--noise` multiplies all measured times by uniform noise of this
width (de Morais et al.: 75 %).

The last line is one JSON object, for all programs and for the programs that are put aside: the median and the largest
error, the share of targets inside of the 90 % interval, and the median width of the interval.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import quipu.modeling.times.communication as of_mpi
import quipu.modeling.times.rates as of_computation
from modeling_extrap import interpreter, model_with_extrap
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.analysis import analyze
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import Experiment, FloatArray, mean_over_repetitions, median_over_repetitions
from quipu.modeling.models import Analysis

DATA = Path(__file__).resolve().parent / "data" / "times"
NO_MODEL = ("_NOTICEABLE", "_LONGEST_STEP", "_SETTLED")  # constants of texts and of searches for a maximum
MODELERS = ("quipu", "formulas", "one_rate", "extrap")
Predicted = tuple[float, float, float]
"""Value, lower and upper end of the interval, in seconds; NaN if a modeler gives no interval."""


@dataclass(frozen=True)
class Outcome:
    """A prediction of a program at one target. truth: seconds, the median of the runs."""

    program: str
    put_aside: bool
    point: str
    truth: float
    predicted: Predicted

    @property
    def error(self) -> float:
        """The relative error."""
        return abs(self.predicted[0] / self.truth - 1.0)

    @property
    def inside(self) -> bool:
        """Return whether the interval contains the measured time."""
        return self.predicted[1] <= self.truth <= self.predicted[2]

    @property
    def width(self) -> float:
        """The width of the interval relative to the measured time."""
        return (self.predicted[2] - self.predicted[1]) / self.truth


def with_noise(experiment: Experiment, noise: float, seed: int) -> Experiment:
    """Return the experiment with each measured time multiplied by 1 ± noise / 2, uniform."""
    if not noise:
        return experiment
    random = np.random.default_rng(seed)
    values = {
        name: own
        if experiment.metrics[name].is_effort
        else own * random.uniform(1 - noise / 2, 1 + noise / 2, own.shape)
        for name, own in experiment.values.items()
    }
    return replace(experiment, values=values)


def by_quipu(analysis: Analysis, point: dict[str, float]) -> Predicted:
    """Return the prediction of `quipu predict`."""
    total = evaluate(analysis, point).total
    return total.value, total.lower, total.upper


def by_formulas(analysis: Analysis, point: dict[str, float]) -> Predicted:
    """Return the prediction by formulas of time."""
    return by_quipu(replace(analysis, times=None), point)


def by_one_rate(experiment: Experiment, target: Experiment, place: int) -> Predicted:
    """Return the instructions at the target times the rate of each call path at the largest size with as many ranks."""
    ranks = target.points[place, target.parameters.index("p")]
    same = np.flatnonzero(experiment.points[:, experiment.parameters.index("p")] == ranks)
    counts = np.nan_to_num(mean_over_repetitions(experiment.values["instructions"]))
    largest = same[np.argmax(counts[:, same].sum(axis=0))]
    seconds = np.nan_to_num(median_over_repetitions(experiment.values["time"]))[:, largest]
    there = np.nan_to_num(mean_over_repetitions(target.values["instructions"]))[:, place]
    at_target = {target.tree.key(path): there[path] for path in range(len(target.tree))}
    total = 0.0
    for path in np.flatnonzero(~experiment.tree.start_and_end).tolist():
        own = counts[path, largest]
        total += seconds[path] * (at_target.get(experiment.tree.key(path), 0.0) / own if own > 0 else 1.0)
    return total, np.nan, np.nan


def by_extrap(experiment: Experiment, points: FloatArray) -> list[Predicted]:
    """Return the sum of Extra-P's predictions for each call path at points (points, parameters)."""
    paths = np.flatnonzero(~experiment.tree.start_and_end & np.nan_to_num(experiment.values["time"]).any(axis=(1, 2)))
    values = np.nan_to_num(experiment.values["time"][paths])
    question = SimpleNamespace(
        name=experiment.name, parameters=experiment.parameters, points=experiment.points, values=values, targets=points
    )
    answers = model_with_extrap([question], interpreter())[experiment.name]  # type: ignore[list-item]
    totals = np.maximum(answers.predictions, 0.0).sum(axis=0)
    return [(float(total), np.nan, np.nan) for total in totals]


def measured(name: str, noise: float, folder: Path) -> tuple[Experiment, Experiment]:
    """Return the runs of a program and its target, unpacked into a folder."""
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        # Python 3.11.2 of Debian 12 has no extraction filters. Archives of the project do not need them.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safe)  # type: ignore[arg-type]
    experiment = replace(load_experiment(folder / name / "runs"), name=name)
    return with_noise(experiment, noise, zlib.crc32(name.encode())), load_experiment(folder / name / "target")


def outcomes(name: str, put_aside: bool, noise: float, peers: bool) -> dict[str, list[Outcome]]:
    """Return the predictions of each modeler for a program at its targets."""
    with tempfile.TemporaryDirectory() as folder:
        experiment, target = measured(name, noise, Path(folder))
        analysis = analyze(experiment)
        order = [target.parameters.index(parameter) for parameter in experiment.parameters]
        far = by_extrap(experiment, target.points[:, order]) if peers else []
        found: dict[str, list[Outcome]] = {}
        for place, truth in enumerate(np.median(target.program("time"), axis=1).tolist()):
            point = dict(zip(target.parameters, target.points[place].tolist(), strict=True))
            said: dict[str, Callable[[], Predicted]] = {
                "quipu": partial(by_quipu, analysis, point),
                "formulas": partial(by_formulas, analysis, point),
                "one_rate": partial(by_one_rate, experiment, target, place),
            }
            if peers:
                said["extrap"] = partial(far.__getitem__, place)
            for modeler, predict in said.items():
                text = ", ".join(f"{key}={value:g}" for key, value in point.items())
                found.setdefault(modeler, []).append(Outcome(name, put_aside, text, truth, predict()))
        return found


def summary(found: list[Outcome]) -> dict[str, float]:
    """Return the figures that the module docstring names."""
    errors = [own.error for own in found]
    result = {"median_error": float(np.median(errors)), "worst_error": max(errors)}
    if not np.isnan(found[0].predicted[1]):
        result["inside"] = float(np.mean([own.inside for own in found]))
        result["width"] = float(np.median([own.width for own in found]))
    return {key: round(value, 4) for key, value in result.items()}


def sweep(entries: list[dict[str, Any]], noise: float) -> dict[str, Any]:
    """Return the figures with each constant of the rates halved and doubled."""
    with tempfile.TemporaryDirectory() as folder:
        known = []
        for entry in entries:
            experiment, target = measured(entry["name"], noise, Path(folder))
            known.append((entry, analyze(experiment), target))

        def figures() -> dict[str, float]:
            found = []
            for entry, analysis, target in known:
                assert analysis.times is not None
                rates = replace(analysis.times.learned)  # a copy, which fits its rates again
                fresh = replace(analysis, times=replace(analysis.times, learned=rates))
                for place, truth in enumerate(np.median(target.program("time"), axis=1).tolist()):
                    point = dict(zip(target.parameters, target.points[place].tolist(), strict=True))
                    said = by_quipu(fresh, point)
                    found.append(Outcome(entry["name"], entry["put_aside"], str(point), truth, said))
            return summary(found)

        result = {"as it is": figures()}
        names = [
            (module, name)
            for module in (of_computation, of_mpi)
            for name, value in vars(module).items()
            if name[0] == "_" and isinstance(value, float) and name not in NO_MODEL
        ]
        for (module, name), factor in itertools.product(names, (0.5, 2.0)):
            before = getattr(module, name)
            setattr(module, name, before * factor)
            part = "mpi " if module is of_mpi else ""
            result[f"{part}{name[1:].lower()} × {factor:g}"] = figures()
            setattr(module, name, before)
        for row, said in result.items():
            print(f"{row:30} {said}", flush=True)
    return result


def main() -> None:
    """Predict all programs, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", default="", help="names with commas; all without")
    parser.add_argument("--noise", type=float, default=0.0, help="width of the uniform noise, 0.75 is 75 %%")
    parser.add_argument("--no-peers", action="store_true", help="without Extra-P, which is installed from PyPI")
    parser.add_argument("--constants", action="store_true", help="halve and double the constants of the rates")
    arguments = parser.parse_args()
    entries = json.loads((DATA / "programs.json").read_text(encoding="utf-8"))
    wanted = set(arguments.programs.split(",")) - {""}
    entries = [entry for entry in entries if not wanted or entry["name"] in wanted]
    if arguments.constants:
        print(json.dumps({"constants": sweep(entries, arguments.noise)}))
        return
    every: dict[str, list[Outcome]] = {}
    for entry in entries:
        found = outcomes(entry["name"], entry["put_aside"], arguments.noise, not arguments.no_peers)
        for modeler, own in found.items():
            every.setdefault(modeler, []).extend(own)
        for place, one in enumerate(found["quipu"]):
            said = "  ".join(f"{modeler} {own[place].predicted[0]:.4g}" for modeler, own in found.items())
            print(f"{one.program:14} {one.point:14} measured {one.truth:.4g} s  {said}", flush=True)
    result: dict[str, object] = dict(summary(every["quipu"]))
    for modeler, own in every.items():
        aside = [one for one in own if one.put_aside]
        for key, value in summary(own).items():
            result[f"{modeler}_{key}"] = value
        for key, value in summary(aside).items() if aside else ():
            result[f"{modeler}_{key}_put_aside"] = value
    print(json.dumps(result))


if __name__ == "__main__":
    main()
