# SPDX-License-Identifier: Apache-2.0
"""Halve and double each numeric constant of the laws of counts, and measure the effect.

    make bench-count_constants
    make bench-count_constants ARGS='--constants _EACH,_SHARE life snap'

The constants are all numbers that modules of modeling/counts/ define. With each constant at half and at twice its
value, programs of benchmarks/data/programs/ are modeled, and predicted at their targets: from runs with few ranks, and
with additional count-only runs. Without names of programs, the programs are PROGRAMS.

Each line shows one constant, as means over programs and metrics: `within1`, the share of call paths with an error of at
most 1 %; `inside`, the share inside of the 90 % interval; `score`, the score of the interval (0 is perfect).

The last line is one JSON object: `constants`, the number of constants; `used`, the number of constants that change a
figure; `base` and `changed`, the figures.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from programs_corpus import POINTS, Target, experiment_of, programs, target_of, unpack
from programs_modelers import laws_engine
from programs_scores import rows_of
from quipu.modeling import counts
from quipu.modeling.experiment import Experiment

PROGRAMS = ["halo3d26", "prk_DGEMM", "prk_Reduce", "prk_Synch_global", "snap", "sweep3d", "tealeaf"]
"""Programs that are put aside and take a few seconds."""
FIGURES = ("within1", "inside", "score")


def modules() -> list[ModuleType]:
    """Return the modules of modeling/counts/."""
    folder = Path(str(counts.__file__)).parent
    return [importlib.import_module(f"{counts.__name__}.{file.stem}") for file in sorted(folder.glob("[a-z]*.py"))]


def constants() -> Iterator[tuple[ModuleType, str, float]]:
    """Yield all numbers that modules define, except seeds of random numbers."""
    for module in modules():
        for statement in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name = statement.targets[0].id
                value = getattr(module, name)
                if type(value) in (int, float) and not name.endswith("SEED"):
                    yield module, name, value


def set_everywhere(module: ModuleType, name: str, value: float) -> None:
    """Set a constant, also in modules that imported it."""
    old = getattr(module, name)
    for other in modules():
        if other is module or (getattr(other, name, None) == old and not _defines(other, name)):
            setattr(other, name, value)


def _defines(module: ModuleType, name: str) -> bool:
    return any(other is module and own == name for other, own, _ in constants())


def figures(corpus: Sequence[tuple[Experiment, Target]]) -> dict[str, float]:
    """Return the figures of the laws of counts."""
    found = []
    for experiment, target in corpus:
        predicted = laws_engine(experiment, [target.point])[0]
        rows = [rows_of(experiment, target, name, own) for name, own in predicted.items() if name in target.values]
        means = [
            (
                np.mean([abs(row.error) <= 0.01 for row in own]),
                np.mean([row.inside for row in own]),
                np.mean([row.score for row in own]),
            )
            for own in rows
            if own
        ]
        found.append(np.mean(means, axis=0))
    means_of_all = np.mean(found, axis=0)
    return {name: round(float(own), 4) for name, own in zip(FIGURES, means_of_all, strict=True)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="PROGRAM", help="programs of benchmarks/data/programs/")
    parser.add_argument("--constants", metavar="NAME,…", help="only these")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = given.constants.split(",") if given.constants else None
    corpus = []
    with tempfile.TemporaryDirectory() as scratch:
        for program in programs(given.names or PROGRAMS):
            folder = unpack(program, Path(scratch) / program.name)
            corpus += [(experiment_of(program, folder, points), target_of(folder)) for points in POINTS]
        base = figures(corpus)
        print(f"{'as they are':40} {base}", flush=True)
        changed: dict[str, dict[str, Any]] = {}
        every = list(constants())
        for module, name, value in every:
            if wanted is not None and name not in wanted:
                continue
            label = f"{module.__name__.rpartition('.')[2]}.{name}"
            changed[label] = {"value": value}
            for factor in (0.5, 2):
                other = max(1, round(value * factor)) if isinstance(value, int) else value * factor
                set_everywhere(module, name, other)
                changed[label][f"times {factor:g}"] = figures(corpus)
                set_everywhere(module, name, value)
            print(f"{label + f' = {value:g}':40} {changed[label]['times 0.5']} {changed[label]['times 2']}", flush=True)
    used = sum(any(own != base for key, own in entry.items() if key != "value") for entry in changed.values())
    print(json.dumps({"constants": len(every), "used": used, "base": base, "changed": changed}))


if __name__ == "__main__":
    main()
