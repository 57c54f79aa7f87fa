# SPDX-License-Identifier: Apache-2.0
"""Model the sets of a file with Extra-P, and write predictions, exponents and CPU seconds.

This program runs in the separate environment of Extra-P:

    python modeling_extrap_worker.py SETS.json ANSWERS.json
"""

from __future__ import annotations

import json
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from extrap.entities.callpath import Callpath
from extrap.entities.coordinate import Coordinate
from extrap.entities.experiment import Experiment
from extrap.entities.measurement import Measurement
from extrap.entities.metric import Metric
from extrap.entities.parameter import Parameter
from extrap.modelers.model_generator import ModelGenerator
from extrap.util.progress_bar import DUMMY_PROGRESS


def experiment_of(task: dict[str, Any]) -> Experiment:
    """Return an experiment with one call path per function."""
    experiment = Experiment()
    for name in task["parameters"]:
        experiment.add_parameter(Parameter(name))
    metric = Metric("time")
    experiment.add_metric(metric)
    coordinates = [Coordinate(*point) for point in task["points"]]
    for coordinate in coordinates:
        experiment.add_coordinate(coordinate)
    for number, rows in enumerate(task["values"]):
        callpath = Callpath(f"f{number}")
        experiment.add_callpath(callpath)
        for coordinate, values in zip(coordinates, rows, strict=True):
            experiment.add_measurement(Measurement(coordinate, callpath, metric, values))
    return experiment


def leads_of(function: Any, parameters: int) -> list[tuple[str, int]]:
    """Return the leading (i, j) of every parameter."""
    leads = [(Fraction(0), Fraction(0))] * parameters
    for term in function.compound_terms:
        pairs = term.parameter_term_pairs if hasattr(term, "parameter_term_pairs") else [(0, term)]
        for parameter, part in pairs:
            exponents = {"polynomial": Fraction(0), "logarithm": Fraction(0)}
            for simple in part.simple_terms:
                exponents[simple.term_type] += Fraction(str(simple.exponent))
            leads[parameter] = max(leads[parameter], (exponents["polynomial"], exponents["logarithm"]))
    return [(str(i), int(j)) for i, j in leads]


def main() -> None:
    answers = {}
    for name, task in json.loads(Path(sys.argv[1]).read_text()).items():
        generator = ModelGenerator(experiment_of(task))
        started = time.process_time()
        generator.model_all(DUMMY_PROGRESS)
        seconds = time.process_time() - started
        functions = {key[0].name: model.hypothesis.function for key, model in generator.models.items()}
        ordered = [functions[f"f{number}"] for number in range(len(task["values"]))]
        targets = [target[0] if len(target) == 1 else target for target in task["targets"]]
        answers[name] = {
            "seconds": seconds,
            "predictions": [[float(function.evaluate(target)) for target in targets] for function in ordered],
            "leads": [leads_of(function, len(task["parameters"])) for function in ordered],
        }
    Path(sys.argv[2]).write_text(json.dumps(answers))


if __name__ == "__main__":
    main()
