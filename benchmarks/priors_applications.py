# SPDX-License-Identifier: Apache-2.0
"""Repeat the evaluation of noise-resilient priors (de Morais et al., section V-C) with the examples as applications.

    make bench-priors_applications [ARGS="--quick"]

heat, cg, samplesort and wavefront run at 5 × 5 points of p and n, and at two test points: one step out in p, and one
step out in n. The evaluated kernels are the regions that the documentation of the examples states, and the MPI
operations of each caller. For each kernel, the program prints:

- Table IV: the models, and their exponent deviation from the stated complexity;
- the data of Figure 6: the measured lines, and the relative errors at the test points;
- the data of Figure 7: both under artificial noise.

`quipu` uses one repetition and `quipu_all` uses all repetitions. The other modelers use the median of all repetitions.
Finished runs and evaluations are stored (--folder) and not repeated. With --again, the test points are measured twice.
The second measurement is then compared with the first like a prediction, with the same noise added.
docs/design/priors-evaluation.md describes the details.

The last line is one JSON object, by application and kind:

- `ed`, `re`, `ed_75`, `re_75`: exponent deviation and relative error (%), without and with 75 % of artificial noise,
  each for `quipu`, `quipu_all`, `classic` (time alone), `dnn` (if its network is trained) and `extrap`.
- `re` and `re_75` for `again` (if the test points were measured twice): the relative error of the median of the second
  set of repetitions.
- `wavefront_waiting`: the result of `quipu diagnose` for the MPI_Recv behind the wave.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from artificial_noise import INTENSITIES, Pattern, inject
from modeling_extrap import interpreter
from priors_accuracy import exponent_deviation
from priors_application_modelers import Answer, Modeler, modelers_of
from priors_application_runs import FULL, QUICK, Kernel, Runs, load, measure
from priors_programs import Floats
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.analysis import analyze
from quipu.modeling.diagnosis import diagnose

HERE = Path(__file__).resolve().parent
PATTERNS = [pattern for pattern in Pattern if pattern is not Pattern.NONE]
KINDS = ("computation", "communication")
# ED of the three kernels of Table IV, mean over the parameters.
PAPER_ED = {
    "Kripke computation": {"classic": 0.48, "dnn": 0.53, "swc": 0.08},
    "Kripke communication": {"classic": 0.53, "dnn": 0.25, "swc": 0.11},
    "RELeARN": {"classic": 0.29, "dnn": 0.54, "swc": 0.13},
}
_SCALE = 65536


def deviations(answer: Answer, kernels: list[Kernel]) -> Floats:
    """Return ED (K,) of each kernel, the mean over the parameters."""
    return np.array(
        [
            np.mean([float(exponent_deviation(lead[x], kernel.truth[x])) for x in kernel.truth])
            for lead, kernel in zip(answer.leads, kernels, strict=True)
        ]
    )


def relative_errors(predictions: Floats, tests: Floats) -> Floats:
    """Return RE (K, T) in % of predictions (K, T) from the medians of times (K, T, R) at the test points."""
    truth = np.nanmedian(tests, axis=2)
    errors: Floats = 100.0 * np.abs(predictions - truth) / truth
    return errors


class Evaluation:
    """ED and RE of the kernels of each application under noise, kept in a file as they are found."""

    def __init__(self, file: Path, seed: int, share: float) -> None:
        self.file, self.seed, self.share = file, seed, share
        self.known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}

    def ask(self, runs: Runs, name: str, modeler: Modeler, intensity: float, injections: int) -> dict[str, Floats]:
        """Return `ed` (I, K) and `re` (I, K, T) of I injections of noise, all patterns one after the other."""
        repetitions = runs.experiment.values["time"].shape[2]
        key = f"{runs.application.name} {name} {intensity} {injections} {self.share} {self.seed} {repetitions}"
        if key not in self.known:
            found: dict[str, list[Any]] = {"ed": [], "re": []}
            for times in self.noisy(runs, runs.experiment.values["time"], intensity, injections):
                answer = modeler(times)
                found["ed"].append(deviations(answer, runs.kernels).tolist())
                found["re"].append(relative_errors(answer.predictions, runs.tests).tolist())
            self.known[key] = found
            part = self.file.with_suffix(".part")
            part.write_text(json.dumps(self.known))
            part.replace(self.file)
        return {metric: np.array(values) for metric, values in self.known[key].items()}

    def noisy(self, runs: Runs, times: Floats, intensity: float, injections: int) -> Iterator[Floats]:
        """Return times with I injections of noise each, all patterns one after the other; as they are without noise."""
        for pattern in PATTERNS if intensity else [Pattern.NONE]:
            for number in range(injections if intensity else 1):
                seed = [self.seed, number, zlib.crc32(f"{runs.application.name} {pattern} {intensity}".encode())]
                yield inject(times, pattern, intensity, np.random.default_rng(seed), self.share)

    def again(self, runs: Runs, intensity: float, injections: int) -> Floats | None:
        """Return RE (I, K, T) in % of the second measurement of the test points with noise, None if there is none."""
        if runs.again is None:
            return None
        noisy = self.noisy(runs, runs.again, intensity, injections)
        return np.array([relative_errors(np.nanmedian(times, axis=2), runs.tests) for times in noisy])


def table_iv(runs: Runs, answers: dict[str, Answer]) -> None:
    """Print the stated complexity, the models, and ED by parameter."""
    print("Table IV: stated complexity, models as they were measured, and ED in p and n")
    for number, kernel in enumerate(runs.kernels):
        print(f"  {kernel.name} ({kernel.kind}), stated {_order(kernel.truth)}")
        for name, answer in answers.items():
            lead = answer.leads[number]
            own = [float(exponent_deviation(lead[x], kernel.truth[x])) for x in ("p", "n")]
            print(f"    {name:9} ED {own[0]:.2f} {own[1]:.2f}  {answer.texts[number] or _order(lead)}")


def figure_6(runs: Runs, answers: dict[str, Answer]) -> None:
    """Print medians along the lines that lead to the test points, and there the measured range, predictions and RE."""
    application, times = runs.application, np.nanmedian(runs.experiment.values["time"], axis=2)
    predicted = {name: answer.predictions for name, answer in answers.items()}
    if runs.again is not None:
        predicted["again"] = np.nanmedian(runs.again, axis=2)
    errors = {name: relative_errors(values, runs.tests) for name, values in predicted.items()}
    print("Figure 6: seconds at the measured points before a test point, at it (least to most), and predicted there")
    for number, kernel in enumerate(runs.kernels):
        own = times[list(kernel.paths)].sum(axis=0)
        for test, point in enumerate(application.tests):
            fixed = 1 - test
            line = [i for i, place in enumerate(application.points) if place[fixed] == point[fixed]]
            far = runs.tests[number, test]
            print(
                f"  {kernel.name} ({kernel.kind}) along {'pn'[test]} = "
                f"{', '.join(str(application.points[i][test]) for i in line)}: "
                f"{', '.join(f'{own[i]:.3g}' for i in line)}; at {point[test]}: {np.nanmedian(far):.3g} "
                f"({np.nanmin(far):.3g} to {np.nanmax(far):.3g})"
            )
            values = (
                f"{name} {own[number, test]:.3g} (RE {errors[name][number, test]:.1f}%)"
                for name, own in predicted.items()
            )
            print("    " + ", ".join(values))


def _order(lead: dict[str, Any]) -> str:
    """Return leading exponents as text: p^(1/3) · n^2."""
    parts = []
    for name, (power, log) in lead.items():
        if power:
            parts.append(name if power == 1 else f"{name}^{power}" if power.denominator == 1 else f"{name}^({power})")
        if log:
            parts.append(f"log2({name})" if log == 1 else f"log2({name})^{log}")
    return " · ".join(parts) or "constant"


def figure_7(
    runs: Runs, modelers: dict[str, tuple[Modeler, int]], evaluation: Evaluation
) -> dict[str, dict[str, dict[str, float]]]:
    """Print mean and standard deviation of ED and RE under noise; return ed, re, ed_75, re_75 by kind and modeler.

    re and re_75 have `again`, too, where the test points were measured twice.
    """
    result: dict[str, dict[str, dict[str, float]]] = {}
    print("Figure 7: noise  modeler   ED mean ± deviation   RE mean ± deviation, % (median)")
    for kind in KINDS:
        rows = [number for number, kernel in enumerate(runs.kernels) if kernel.kind == kind]
        if not rows:
            continue
        own: dict[str, dict[str, float]] = {key: {} for key in ("ed", "re", "ed_75", "re_75")}
        for intensity in (0.0, *INTENSITIES):
            end = "_75" if intensity else ""
            for name, (modeler, injections) in modelers.items():
                found = evaluation.ask(runs, name, modeler, intensity, injections)
                ed, re = found["ed"][:, rows], found["re"][:, rows]
                print(
                    f"  {kind:13} {intensity:4.0%}  {name:9}  {ed.mean():.3f} ± {ed.mean(axis=1).std():.3f}"
                    f"        {re.mean():6.1f} ± {re.mean(axis=(1, 2)).std():.1f} ({np.median(re):.1f})",
                    flush=True,
                )
                if intensity in (0.0, 0.75):
                    own[f"ed{end}"][name] = round(float(ed.mean()), 3)
                    own[f"re{end}"][name] = round(float(re.mean()), 1)
            again = evaluation.again(runs, intensity, modelers["quipu_all"][1])
            if again is not None:
                re = again[:, rows]
                print(
                    f"  {kind:13} {intensity:4.0%}  {'again':9}  {'':13}        {re.mean():6.1f} ({np.median(re):.1f})"
                )
                if intensity in (0.0, 0.75):
                    own[f"re{end}"]["again"] = round(float(re.mean()), 1)
        result[kind] = own
    return result


def waiting(folder: Path) -> dict[str, Any] | None:
    """Return the finding of the diagnosis for MPI_Recv in the wavefront example; None without a finding."""
    experiment = load_experiment(folder / "wavefront" / "runs")
    point = dict(zip(experiment.parameters, experiment.points.max(axis=0).tolist(), strict=True)) | {"p": _SCALE}
    for finding in diagnose(experiment, analyze(experiment), point).findings:
        if finding.label.endswith("->MPI_Recv") and finding.parameter == "p":
            return {"call_path": finding.label, "cause": finding.cause.value, "growth": finding.growth}
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="heat and wavefront, small, one repetition")
    parser.add_argument("--application", action="append", choices=[own.name for own in FULL], help="only this one")
    parser.add_argument("--folder", type=Path, default=HERE.parent / "build" / "priors-applications", help="kept files")
    parser.add_argument("--injections", type=int, help="noise injections per pattern and intensity (10; quick 1)")
    parser.add_argument("--extrap-injections", type=int, default=1, help="the same for Extra-P, which is slow (1)")
    parser.add_argument("--noise-share", type=float, default=0.5, help="share of the measurements that noise hits")
    parser.add_argument("--seed", type=int, default=1, help="seed of the noise")
    parser.add_argument("--extrap-python", type=Path, help="Python of an environment with Extra-P")
    parser.add_argument("--no-extrap", action="store_true", help="without Extra-P")
    parser.add_argument("--again", action="store_true", help="measure the test points twice")
    parser.add_argument("--no-measure", action="store_true", help="with the runs that are there")
    options = parser.parse_args()
    chosen = options.application or [own.name for own in FULL]
    applications = tuple(own for own in (QUICK if options.quick else FULL) if own.name in chosen)
    injections = options.injections or (1 if options.quick else 10)
    folder = options.folder / ("quick" if options.quick else "full")
    if not options.no_measure:
        measure(applications, folder, again=options.again)
    evaluation = Evaluation(folder / "evaluated.json", options.seed, options.noise_share)
    python = None if options.no_extrap else options.extrap_python or interpreter()
    result: dict[str, Any] = {}
    for application in applications:
        runs = load(application, folder)
        repetitions = runs.experiment.values["time"].shape[2]
        print(f"\n{application.name}: {len(runs.kernels)} kernels, {repetitions} repetitions", flush=True)
        modelers = {
            name: (modeler, options.extrap_injections if name == "extrap" else injections)
            for name, modeler in modelers_of(runs, python).items()
        }
        answers = {name: modeler(runs.experiment.values["time"]) for name, (modeler, _) in modelers.items()}
        table_iv(runs, answers)
        figure_6(runs, answers)
        result[application.name] = figure_7(runs, modelers, evaluation)
    print("\nED of the paper's applications (Table IV): " + json.dumps(PAPER_ED))
    wave = {"wavefront_waiting": waiting(folder)} if "wavefront" in result else {}
    print(json.dumps({**result, **wave}))


if __name__ == "__main__":
    main()
