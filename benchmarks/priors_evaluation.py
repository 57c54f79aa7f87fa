# SPDX-License-Identifier: Apache-2.0
"""Repeat the evaluation of noise-resilient priors (de Morais et al.) on generated functions, and compare the numbers.

    make bench-priors_evaluation [ARGS="--quick"]
    make bench-priors_evaluation ARGS="--measure-only simulated"     # one part, on another machine or at the same time

Finished runs and evaluated noise are stored in a folder (--folder) and not repeated. A stopped evaluation therefore
continues. docs/design/priors-evaluation.md describes the measurements and the method.

The last line is one JSON object: `ed_zero_share`, `re_computation`, `re_communication`, `re_computation_75`,
`re_communication_75` (in %) and `cost_plain_runs`. Each has a value for these modelers:

- `quipu`: with one repetition. All other modelers have the median of all repetitions.
- `classic`: Quipu's modeler of time alone.
- `dnn`: the DNN-based modeler, if `make bench-dnn_training` has trained its network.
- `extrap`: Extra-P 4.2.5. `paper`: the published numbers.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from artificial_noise import INTENSITIES, Pattern, inject
from dnn_training import base_file
from modeling_extrap import interpreter
from priors_cost import cost
from priors_modelers import Answer, Modeler, deviations, dnn, extrap, priors_of, relative_errors, time_alone
from priors_programs import FULL, QUICK, Measured, load, measure

HERE = Path(__file__).resolve().parent
PATTERNS = [pattern for pattern in Pattern if pattern is not Pattern.NONE]
# The paper's numbers: RE in % without noise and at 75 % ("maximum errors", section V-B), ED of Table II.
PAPER = {
    "ed_zero_share": {"quipu": 1.0},
    "re_computation": {"quipu": 35.0, "classic": 45.0},
    "re_communication": {"quipu": 60.0, "classic": 91.0},
    "re_computation_75": {"quipu": 35.0, "classic": 55.0},
    "re_communication_75": {"quipu": 60.0, "classic": 127.0},
    "cost_plain_runs": {"quipu": 2.95, "classic": 5.7},
}
PAPER_TABLE_II = {"quipu": (0.0, 0.0, 0.0), "classic": (0.44, 1.14, 0.57)}
Row = dict[str, Any]


def summary(answer: Answer, measured: Measured) -> Row:
    """Return mean RE in %, mean ED by parameter, and the share of functions with ED = 0 in all parameters."""
    found = deviations(answer, measured)
    return {
        "re": 100.0 * float(relative_errors(answer, measured).mean()),
        "ed": [float(x) for x in found.mean(axis=0)],
        "zero": float((found == 0).all(axis=1).mean()),
    }


def mean(rows: list[Row]) -> Row:
    """Return the mean of summaries."""
    return {
        "re": float(np.mean([row["re"] for row in rows])),
        "ed": np.mean([row["ed"] for row in rows], axis=0).tolist(),
        "zero": float(np.mean([row["zero"] for row in rows])),
    }


class Evaluation:
    """Summaries by kind, modeler and what was done to the times, kept in a file as they are found."""

    def __init__(self, file: Path, options: argparse.Namespace) -> None:
        self.file, self.options = file, options
        self.known: dict[str, Row] = json.loads(file.read_text()) if file.exists() else {}

    def ask(self, name: str, modeler: Modeler, measured: Measured, noisy: tuple[str, float], injections: int) -> Row:
        """Return the mean summary over injections of one pattern and intensity."""
        pattern, intensity = noisy
        key = f"{measured.kind} {name} {pattern} {intensity} {injections} {self.options.noise_share}"
        if key not in self.known:
            times = measured.experiment.values["time"]
            times = times[:, :, :1] if name == "quipu" else times
            rows = []
            for number in range(injections):
                seed = [self.options.seed, number, zlib.crc32(f"{measured.kind} {pattern} {intensity}".encode())]
                random = np.random.default_rng(seed)
                rows.append(
                    summary(
                        modeler(inject(times, Pattern(pattern), intensity, random, self.options.noise_share)), measured
                    )
                )
            self.keep(key, mean(rows))
        return self.known[key]

    def repeated(self, name: str, modeler: Modeler, measured: Measured, number: int) -> Row:
        """Return the mean summary over all choices of so many repetitions, without artificial noise."""
        key = f"{measured.kind} {name} {number} repetitions"
        if key not in self.known:
            times = measured.experiment.values["time"]
            chosen = combinations(range(times.shape[2]), number)
            self.keep(key, mean([summary(modeler(times[:, :, list(own)]), measured) for own in chosen]))
        return self.known[key]

    def keep(self, key: str, row: Row) -> None:
        """Store a summary in the file."""
        self.known[key] = row
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.known, indent=0))
        part.replace(self.file)


def evaluate(measured: Measured, evaluation: Evaluation, options: argparse.Namespace) -> dict[str, dict[float, Row]]:
    """Return the summaries by modeler and intensity (0: as measured), mean over the patterns; print Figures 4 and 5."""
    modelers: dict[str, tuple[Modeler, int]] = {
        "quipu": (priors_of(measured), options.injections),
        "classic": (time_alone(measured), options.injections),
    }
    if base_file().exists():
        modelers["dnn"] = (dnn(measured), options.dnn_injections)
    else:
        print("without the DNN-based modeler: make bench-dnn_training trains its network")
    if not options.no_extrap:
        modelers["extrap"] = (extrap(measured, options.extrap_python or interpreter()), options.extrap_injections)
    result: dict[str, dict[float, Row]] = {name: {} for name in modelers}
    print(f"\n{measured.kind}: {len(measured.far)} functions\nFigure 4: noise   modeler  RE      ED p   ED n   ED = 0")
    for intensity in (0.0, *INTENSITIES):
        for name, (modeler, injections) in modelers.items():
            if intensity:
                rows = [
                    evaluation.ask(name, modeler, measured, (pattern.value, intensity), injections)
                    for pattern in PATTERNS
                ]
                result[name][intensity] = mean(rows)
            else:
                result[name][0.0] = evaluation.ask(name, modeler, measured, (Pattern.NONE.value, 0.0), 1)
            print(f"          {intensity:5.0%}   {name:8} {_line(result[name][intensity])}", flush=True)
    print("Figure 5: repetitions")
    for number in range(1, measured.experiment.values["time"].shape[2] + 1):
        for name in [own for own in modelers if own != "extrap"]:
            row = evaluation.repeated(name, modelers[name][0], measured, number)
            print(f"          {number:5}   {name:8} {_line(row)}", flush=True)
    return result


def _line(row: Row) -> str:
    return f"{row['re']:6.1f}%  {row['ed'][0]:.3f}  {row['ed'][1]:.3f}  {row['zero']:6.1%}"


def table_ii(found: Mapping[str, dict[str, dict[float, Row]]]) -> None:
    """Print the paper's Table II and ours, without artificial noise."""
    print("\nTable II: mean ED      computation  communication: MPI ranks  message size")
    for name in found["computation"]:
        work, messages = (found[kind][name][0.0]["ed"] for kind in ("computation", "communication"))
        print(f"  {name:20} {max(work):8.3f}     {messages[0]:12.3f}            {messages[1]:.3f}")
    for name, (work, ranks, size) in PAPER_TABLE_II.items():
        print(f"  paper, {name:13} {work:8.3f}     {ranks:12.3f}            {size:.3f}")


def result_of(
    found: Mapping[str, dict[str, dict[float, Row]]], costs: Mapping[str, tuple[float, float]]
) -> dict[str, Any]:
    """Return the JSON object of the last line."""
    names = list(found["computation"])
    share = {name: min(row["zero"] for kind in found.values() for row in kind[name].values()) for name in names}
    result: dict[str, Any] = {"ed_zero_share": share}
    for kind, by_name in found.items():
        result[f"re_{kind}"] = {name: round(by_name[name][0.0]["re"], 2) for name in names}
        result[f"re_{kind}_75"] = {name: round(by_name[name][0.75]["re"], 2) for name in names}
    if costs:
        one, five = (round(float(np.mean(column)), 3) for column in zip(*costs.values(), strict=True))
        result["cost_plain_runs"] = {name: one if name == "quipu" else five for name in names}
    for key, values in result.items():
        values["paper"] = PAPER[key]["quipu"]
        if "classic" in PAPER[key]:
            values["paper_classic"] = PAPER[key]["classic"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="18 functions up to 256 ranks, few injections")
    parser.add_argument("--folder", type=Path, default=HERE.parent / "build" / "priors-evaluation", help="kept files")
    parser.add_argument("--measure-only", choices=("native", "simulated"), help="run one part and end")
    parser.add_argument("--injections", type=int, help="noise injections per function and pattern (100; quick 5)")
    parser.add_argument("--extrap-injections", type=int, help="the same for Extra-P, which is slow (2; quick 1)")
    parser.add_argument("--dnn-injections", type=int, help="the same for the DNN-based modeler (10; quick 1)")
    parser.add_argument("--noise-share", type=float, default=0.5, help="share of the measurements that noise hits")
    parser.add_argument("--seed", type=int, default=1, help="seed of the noise")
    parser.add_argument("--extrap-python", type=Path, help="Python of an environment with Extra-P")
    parser.add_argument("--no-extrap", action="store_true", help="without Extra-P")
    parser.add_argument("--no-cost", action="store_true", help="without the cost of measuring")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    options.injections = options.injections or (5 if options.quick else 100)
    options.extrap_injections = options.extrap_injections or (1 if options.quick else 2)
    options.dnn_injections = options.dnn_injections or (1 if options.quick else 10)
    folder = options.folder / ("quick" if options.quick else "full")
    measure(plan, folder, options.measure_only or "")
    if options.measure_only:
        return
    evaluation = Evaluation(folder / "evaluated.json", options)
    found = {own.kind: evaluate(own, evaluation, options) for own in load(plan, folder)}
    table_ii(found)
    print("\ncost of one configuration" + ("" if not options.no_cost else ": not measured"))
    costs = {} if options.no_cost else cost(options.quick)
    print(json.dumps(result_of(found, costs)))


if __name__ == "__main__":
    main()
