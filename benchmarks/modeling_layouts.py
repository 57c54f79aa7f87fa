# SPDX-License-Identifier: Apache-2.0
"""Test models on cases without tuning: all layouts of points, other shapes, constants, real data.

    make bench-modeling_layouts [ARGS="--functions 50 --seed 3 --measurements FOLDER --kernels FOLDER"]

- Layouts: grids, crossing lines and scattered points of one to four parameters, with noise of 0 to 75 %. Each seed
  draws the functions. Each term is at least 1 % of the value at the largest corner.
- Shapes: sums of two functions, saturation, changes of behaviour.
- Constants.
- Real data: measured data whose largest configurations are left out.

Extra-P 4.2.5 (mean of the repetitions) and least squares with the true form predict the same targets.

The last line is one JSON object. *2x* and *16x* are targets at 2 and 16 times the largest values:

- `coverage` {cell: {2x, 16x}}: 90 % intervals that contain the true value (%).
- `within5` {cell: {quipu, extrap, bound}}: predictions within 5 % one step out (%). `bound` is the true form.
- `shapes` {shape noise: {quipu, extrap, coverage}}: median error at 2x (%), and intervals that contain the true value
  at 2x and 16x (%).
- `constants_off`: constants that are predicted more than 20 % off at 16x, with noise of up to 25 % (%). `constants`
  {cell}: the same by cell.
- `real` {set: {quipu, extrap, coverage}}: median error (%), and intervals that contain the measured value (%).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import modeling_layout_shapes as shapes
import numpy as np
from modeling_extrap import interpreter, model_with_extrap
from modeling_layout_real import kernel_sets, relearn_sets
from modeling_layout_sets import NOISE, Floats, LayoutSet, planted_set
from quipu.modeling.experiment import Metric
from quipu.modeling.pmnf import Model, fit_models

TIME = Metric("time", "s", "cost")
LAYOUTS = ("grid", "lines", "scattered")
CONSTANT_NOISE = (0.02, 0.05, 0.1, 0.25)
STEP, TWICE, FAR = 0, 1, 2  # targets of planted sets
QUICK_NOISE = (0.0, 0.05)


@dataclass(frozen=True, eq=False)
class Predicted:
    """Values and 90 % intervals (N, T); NaN if there is none."""

    value: Floats
    lower: Floats
    upper: Floats

    def holds(self, truth: Floats) -> Floats:
        """Return where intervals contain the true value, up to rounding, (N, T) of 0 and 1."""
        slack = 1e-6 * np.abs(truth)
        return ((self.lower - slack <= truth) & (truth <= self.upper + slack)).astype(np.float64)


def model_with_quipu(own: LayoutSet) -> Predicted:
    """Return Quipu's predictions."""
    models = fit_models(own.points, own.values, TIME, own.parameters)
    rows = [[model.predict(target) for target in own.targets.tolist()] for model in models if isinstance(model, Model)]
    table = np.array([[(p.value, p.lower, p.upper) for p in row] for row in rows])
    return Predicted(*table.transpose(2, 0, 1))


def percent(flags: Floats | np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> float:
    """Return the percentage of true entries."""
    return round(100 * float(np.mean(flags)), 1)


def error(values: Floats, truth: Floats) -> float:
    """Return the median relative error in %."""
    return round(100 * float(np.median(np.abs(values / truth - 1))), 2)


class Benchmark:
    """The options and the results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.python = None if options.no_extrap else options.extrap_python or interpreter()

    def extrap(self, own: LayoutSet) -> Floats | None:
        """Return Extra-P's predictions, (N, T); None if it does not take part or cannot model the layout."""
        if self.python is None or (own.name.startswith("scattered") and len(own.parameters) > 1):
            return None
        first = slice(self.options.extrap_functions)
        part = replace(own, values=own.values[first], truth=own.truth[first], forms=own.forms[first])
        return model_with_extrap([part], self.python, self.options.answers)[own.name].predictions

    def layouts(self) -> Iterator[LayoutSet]:
        """Yield the sets of planted functions."""
        for parameters in range(1, self.options.parameters + 1):
            for layout in LAYOUTS if parameters > 1 else ("grid", "scattered"):
                for noise in self.options.noise:
                    count = self.options.functions if parameters < 4 else max(self.options.functions // 4, 2)
                    yield planted_set(layout, parameters, noise, count, self.options.seed)

    def planted(self) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
        """Return `coverage` and `within5`."""
        coverage, within = {}, {}
        for own in self.layouts():
            mine = model_with_quipu(own)
            held = mine.holds(own.truth)
            coverage[own.name] = {"2x": percent(held[:, TWICE]), "16x": percent(held[:, FAR])}
            answers = {"quipu": mine.value, "extrap": self.extrap(own), "bound": own.true_form_predictions()}
            within[own.name] = {
                name: percent(np.abs(values / own.truth[: len(values)] - 1)[:, STEP] <= 0.05)
                for name, values in answers.items()
                if values is not None
            }
            print(f"{own.name:24} {coverage[own.name]}  {within[own.name]}", flush=True)
        return coverage, within

    def shapes(self) -> dict[str, dict[str, float]]:
        """Return `shapes`."""
        found = {}
        for shape in shapes.SHAPES:
            for noise in shapes.NOISE:
                sets = shapes.shape_sets(shape, noise, self.options.functions, self.options.seed)
                ratios, others, held = [], [], []
                for own in sets:
                    mine, theirs = model_with_quipu(own), self.extrap(own)
                    ratios.append(mine.value[:, TWICE] / own.truth[:, TWICE])
                    held.append(mine.holds(own.truth)[:, TWICE:])
                    if theirs is not None:
                        others.append(theirs[:, TWICE] / own.truth[: len(theirs), TWICE])
                name = f"{shape} {100 * noise:g}%"
                found[name] = {"quipu": error(np.concatenate(ratios), np.ones(1))}
                if others:
                    found[name]["extrap"] = error(np.concatenate(others), np.ones(1))
                found[name]["coverage"] = percent(np.concatenate(held))
                print(f"{name:28} {found[name]}", flush=True)
        return found

    def constants(self) -> tuple[dict[str, float], float]:
        """Return `constants` and `constants_off`."""
        found = {}
        for parameters in range(1, min(self.options.parameters, 3) + 1):
            for layout in LAYOUTS if parameters > 1 else ("grid",):
                for noise in CONSTANT_NOISE:
                    own = planted_set(
                        layout, parameters, noise, 2 * self.options.functions, self.options.seed, constant=True
                    )
                    off = np.abs(model_with_quipu(own).value / own.truth - 1)[:, FAR]
                    found[own.name] = percent(off > 0.2)
                    print(f"{own.name:32} off {found[own.name]} worst {off.max():.2f}", flush=True)
        return found, round(float(np.mean(list(found.values()))), 2)

    def real(self) -> dict[str, dict[str, float]]:
        """Return `real`; sets of one name are combined."""
        sets: list[Iterable[LayoutSet]] = []
        if self.options.measurements:
            sets.append(relearn_sets(self.options.measurements))
        if self.options.kernels:
            sets.append(kernel_sets(self.options.kernels, self.options.seed))
        rows: dict[str, list[tuple[Floats, Floats | None, Floats]]] = defaultdict(list)
        for own in (one for several in sets for one in several):
            mine = model_with_quipu(own)
            theirs = None if own.name in ("gemm", "geqrf") else self.extrap(own)
            ratios = None if theirs is None else (theirs / own.truth[: len(theirs)]).ravel()
            rows[own.name].append(((mine.value / own.truth).ravel(), ratios, mine.holds(own.truth).ravel()))
        found = {}
        for name, parts in rows.items():
            others = [other for _, other, _ in parts if other is not None]
            found[name] = {"quipu": error(np.concatenate([own for own, _, _ in parts]), np.ones(1))}
            if others:
                found[name]["extrap"] = error(np.concatenate(others), np.ones(1))
            found[name]["coverage"] = percent(np.concatenate([held for _, _, held in parts]))
            print(f"{name:40} {found[name]}", flush=True)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=200, help="functions per cell (a quarter for m = 4)")
    parser.add_argument("--parameters", type=int, default=4, help="cells of up to so many parameters")
    parser.add_argument("--noise", type=float, nargs="*", default=NOISE, help="noise of the cells, 0.05 for 5 %%")
    parser.add_argument("--parts", nargs="*", default=("planted", "shapes", "constants", "real"), help="what to run")
    parser.add_argument("--seed", type=int, default=20261122, help="seed of all functions and their noise")
    parser.add_argument("--measurements", type=Path, help="folder with relearn_data.txt")
    parser.add_argument("--kernels", type=Path, help="folder with gemm_train.parquet and geqrf_train.parquet")
    parser.add_argument("--extrap-python", type=Path, help="Python of an environment with Extra-P")
    parser.add_argument(
        "--extrap-functions",
        type=int,
        help="how many functions of each set Extra-P models, which is slow (default: all)",
    )
    parser.add_argument("--answers", type=Path, help="keep what Extra-P answered in this folder, to go on from there")
    parser.add_argument("--no-extrap", action="store_true", help="Quipu and the bound only")
    parser.add_argument("--quick", action="store_true", help="few functions, two parameters, without Extra-P")
    options = parser.parse_args()
    if options.quick:
        options.functions, options.parameters, options.noise, options.no_extrap = 20, 2, QUICK_NOISE, True
    run = Benchmark(options)
    result: dict[str, object] = {}
    if "planted" in options.parts:
        result["coverage"], result["within5"] = run.planted()
    if "shapes" in options.parts:
        result["shapes"] = run.shapes()
    if "constants" in options.parts:
        result["constants"], result["constants_off"] = run.constants()
    if "real" in options.parts:
        result["real"] = run.real()
    print(json.dumps(result, ensure_ascii=False))


if __name__ == "__main__":
    main()
