# SPDX-License-Identifier: Apache-2.0
"""Predict public programs at twice the size and two to four times the ranks, from small runs.

    make bench-programs ARGS="--modelers quipu,extrap"
    make bench-programs ARGS="--engine MODULE:FUNCTION minife lulesh"

Each program of benchmarks/data/programs/ is modeled twice: from its runs with few ranks alone, and with additional
count-only runs of the smallest size, up to the number of ranks of the target.

The last line is one JSON object. It has these figures for each metric, and for the metrics in `ALL` together: call
paths with an error of at most 1 % and 5 % (%), call paths inside of the 90 % interval (%), score of the interval (0 is
perfect), and share of the metric that is predicted exactly (%, mean over programs).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from programs_corpus import POINTS, Points, Program, experiment_of, programs, target_of, unpack
from programs_modelers import (
    Engine,
    ExtraP,
    engine_of,
    extrap_or_none,
    formulas_engine,
    laws_engine,
    quipu_engine,
)
from programs_scores import Row, rows_of, summary

METRICS = ("visits", "blocks", "instructions", "flops", "bytes_sent", "messages_sent")
ALL = ("blocks", "flops", "bytes_sent", "messages_sent")
"""The metrics of the figure `all`: metrics that do not follow from another one."""
_OWN: dict[str, Engine] = {"quipu": quipu_engine, "formulas": formulas_engine, "laws": laws_engine}


@dataclass(frozen=True)
class Result:
    """The rows of one program predicted by a modeler from some points, and its CPU seconds."""

    program: Program
    points: Points
    rows: list[Row]
    seconds: float


def main() -> None:
    """Model the corpus and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all without names")
    parser.add_argument("--modelers", default="quipu", help="quipu, formulas, laws, extrap, separated by commas")
    parser.add_argument("--engine", metavar="MODULE:FUNCTION", help="a further engine: see programs_modelers.py")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    engines: dict[str, Engine] = {}
    for name in given.modelers.split(",") if given.modelers else []:
        if name in _OWN:
            engines[name] = _OWN[name]
        elif name == "extrap":
            peer = extrap_or_none()
            if peer is None:
                print("extrap: skipped, it could not be installed", flush=True)
            else:
                engines[name] = peer
        else:
            parser.error(f"--modelers {name}: there are quipu and extrap")
    if given.engine:
        engines[given.engine] = engine_of(given.engine)
    results: dict[str, list[Result]] = {name: [] for name in engines}
    chosen = programs(given.names)
    for program in chosen:
        with tempfile.TemporaryDirectory() as folder:
            unpacked = unpack(program, Path(folder))
            for points in POINTS:
                for name, engine in engines.items():
                    result = judge(program, unpacked, points, engine)
                    results[name].append(result)
                    line = json.dumps({**together(result), "cpu_s": result.seconds})
                    print(f"{program.name} {points} {name} {line}", flush=True)
    details = [
        {"program": own.program.name, "points": own.points, "modeler": name, **together(own), "cpu_s": own.seconds}
        for name, found in results.items()
        for own in found
    ]
    named = {name: figures(own) for name, own in results.items()}
    print(json.dumps({"programs": len(chosen), **named, "details": details}))


def judge(program: Program, unpacked: Path, points: Points, engine: Engine) -> Result:
    """Return the predictions of an engine for a program at its target."""
    experiment = experiment_of(program, unpacked, points)
    target = target_of(unpacked)
    started = time.process_time()
    predicted = engine(experiment, [target.point])[0]
    seconds = engine.seconds if isinstance(engine, ExtraP) else time.process_time() - started
    rows = [
        row
        for metric in METRICS
        if metric in predicted and metric in target.values
        for row in rows_of(experiment, target, metric, predicted[metric])
    ]
    return Result(program, points, rows, round(seconds, 1))


def together(result: Result) -> dict[str, float]:
    """Return the summary of the metrics in `ALL` of one program."""
    return summary([[row for row in result.rows if row.metric in ALL]])


def figures(results: Iterable[Result]) -> dict[str, object]:
    """Return the figures of a modeler by points, kind of program and metric, and where more points made it worse."""
    all_of = list(results)
    kinds: Mapping[str, Callable[[Program], bool]] = {
        "all": lambda program: True,
        "structured": lambda program: not program.data_dependent,
        "data_dependent": lambda program: program.data_dependent,
        "put_aside": lambda program: program.put_aside,
    }
    found: dict[str, object] = {}
    for points in POINTS:
        own = [result for result in all_of if result.points == points]
        found[points] = {
            **{kind: by_metric([result for result in own if has(result.program)]) for kind, has in kinds.items()},
            "cpu_s": round(sum(result.seconds for result in own), 1),
        }
    found["worse_with_counts"] = worse(all_of)
    return found


def by_metric(results: Iterable[Result]) -> dict[str, dict[str, float]]:
    """Return the summary of each metric, and of those in `ALL` together."""
    rows = [result.rows for result in results]
    chosen = {"all": ALL, **{metric: (metric,) for metric in METRICS}}
    tables = {name: summary([[row for row in own if row.metric in of] for own in rows]) for name, of in chosen.items()}
    return {name: table for name, table in tables.items() if table}


def worse(results: Iterable[Result]) -> int:
    """Return how many programs have a larger score with the count-only runs than without."""
    scores: dict[str, dict[Points, float]] = {}
    for result in results:
        scores.setdefault(result.program.name, {})[result.points] = together(result).get("score", 0.0)
    return sum(own.get("counts", 0.0) > own.get("alone", 0.0) for own in scores.values())


if __name__ == "__main__":
    main()
