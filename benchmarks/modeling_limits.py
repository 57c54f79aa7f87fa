# SPDX-License-Identifier: Apache-2.0
"""Compute the best possible predictions of planted functions, by a predictor that knows how they are drawn.

    make bench-modeling_limits

The functions are those of `modeling_layouts.py`. With one parameter, the predictor knows all functions that can be
drawn, and their probabilities. It predicts the value that has the largest posterior probability within ±5 % (Bayes'
rule; integrated over the share of the constant on a grid, and over the scale in closed form). No predictor with this
knowledge is right more often, on average over functions. Two predictors have different knowledge of the noise:

- `uniform` knows that the noise is uniform within ±noise. It excludes every function that deviates more from a measured
  value.
- `normal` only knows the standard deviation of the noise.

Each line shows one cell. The last line is one JSON object:

- `within5` {cell: {quipu, extrap, normal, uniform}}: predictions within 5 % one step out (%). For `normal` and
  `uniform` it is the expected value; `normal_hit` and `uniform_hit` are the actual values.
- `several`: the same for several parameters with noise of 5 % (modeling_known.py): `normal`, `normal_hit`, `quipu`, and
  `true_form`, the true form fitted to the values.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from modeling_extrap import interpreter, model_with_extrap
from modeling_known import Known, functions
from modeling_layout_sets import LEAST_SHARE, Floats, NormalForm, factor, planted_set, started
from modeling_layouts import STEP, model_with_quipu, percent
from scipy.special import ndtr

LAYOUTS = ("grid", "scattered")
SEVERAL = (("scattered", 2), ("scattered", 3), ("scattered", 4))
NOISE = (0.01, 0.02, 0.05, 0.1)
TOLERANCE = 0.05
SHARE_STEPS, VALUES, PART = 2000, 1200, 4000
"""Shares of the term on a grid of their logits; values among which the best one is sought; shares at a time."""


def _shares() -> tuple[Floats, Floats]:
    """Return shares of the term at the corner, and their probabilities: logits are differences of uniform numbers."""
    widest = -np.log(LEAST_SHARE)
    logits = np.linspace(-widest, widest, SHARE_STEPS + 1)[1:-1]
    weights = 1.0 - np.abs(logits) / widest
    return 1.0 / (1.0 + np.exp(-logits)), weights / weights.sum()


def _curves(points: Floats, corner: float, target: float) -> tuple[Floats, Floats, Floats]:
    """Return all functions of scale 1 at the points (F, C) and at the target (F,), and the logarithms of their odds."""
    shares, odds = _shares()
    at_points, at_target, weights = [], [], []
    for (power, log), probability in functions().items():
        place = factor(np.array([corner]), power, log)[0]
        here = factor(points, power, log) / place
        there = factor(np.array([target]), power, log)[0] / place
        at_points.append(1.0 - shares[:, None] + shares[:, None] * here)
        at_target.append(1.0 - shares + shares * there)
        weights.append(np.log(odds * probability))
    return np.concatenate(at_points), np.concatenate(at_target), np.concatenate(weights)


def _normal(curves: tuple[Floats, Floats, Floats], values: Floats, noise: float) -> tuple[float, float]:
    """Return the best value and the probability that it is within the tolerance, with noise of this size."""
    here, there, weights = curves
    count, repetitions = values.shape
    deviation = noise / np.sqrt(3 * repetitions)
    rest = np.log(values.mean(axis=1)) - np.log(here)
    scales = rest.mean(axis=1)
    odds = weights - 0.5 * ((rest - scales[:, None]) ** 2).sum(axis=1) / deviation**2
    odds = np.exp(odds - odds.max())
    kept = odds > 1e-7 * odds.max()
    odds, centers = odds[kept] / odds[kept].sum(), (scales + np.log(there))[kept]
    width = deviation / np.sqrt(count)
    places = np.linspace(centers.min() - TOLERANCE, centers.max() + TOLERANCE, VALUES)
    share = np.zeros(VALUES)
    for begin in range(0, len(odds), PART):
        part = slice(begin, begin + PART)
        upper = ndtr((places[:, None] - np.log(1.0 - TOLERANCE) - centers[None, part]) / width)
        lower = ndtr((places[:, None] - np.log(1.0 + TOLERANCE) - centers[None, part]) / width)
        share += (upper - lower) @ odds[part]
    best = int(share.argmax())
    return float(np.exp(places[best])), float(share[best])


def _uniform(curves: tuple[Floats, Floats, Floats], values: Floats, noise: float) -> tuple[float, float]:
    """Return the same for uniform noise: scales are within bounds, with a density of their power -(N + 1)."""
    here, there, weights = curves
    low = (values.max(axis=1) / (here * (1.0 + noise))).max(axis=1)
    high = (values.min(axis=1) / (here * (1.0 - noise))).min(axis=1)
    left = low < high
    if not left.any():  # the correct share is between two shares of the grid
        return _normal(curves, values, noise)
    here, there, low, high = here[left], there[left], low[left], high[left]
    whole = 1.0 - (low / high) ** values.size
    odds = weights[left] - values.shape[1] * np.log(here).sum(axis=1) - values.size * np.log(low) + np.log(whole)
    odds = np.exp(odds - odds.max())
    odds /= odds.sum()
    edges = np.log((low * there).min()) - TOLERANCE, np.log((high * there).max()) + TOLERANCE
    places = np.exp(np.linspace(*edges, VALUES))
    share = np.zeros(VALUES)
    for begin in range(0, len(odds), PART):
        part = slice(begin, begin + PART)
        ends = []
        for bound in (1.0 - TOLERANCE, 1.0 + TOLERANCE):
            scale = places[None, :] / bound / there[part, None]
            inside = np.clip(scale, low[part, None], high[part, None]) / low[part, None]
            ends.append((1.0 - inside**-values.size) / whole[part, None])
        share += odds[part] @ (ends[0] - ends[1])
    best = int(share.argmax())
    return float(places[best]), float(share[best])


def several(layout: str, parameters: int, noise: float, functions: int, seed: int) -> dict[str, list[float]]:
    """Return for which functions Quipu, the true form and the predictor are right, and the predictor's expectation."""
    own = planted_set(layout, parameters, noise, functions, seed)
    corner = np.array([column[-1] for column in started(layout, parameters, noise, seed)[1]])
    known = Known(own.points, corner, own.targets[STEP], noise / np.sqrt(3 * own.values.shape[2]), seed)
    found = [
        known.predict(values.mean(axis=1), known.state(form), TOLERANCE)
        for values, form in zip(own.values, own.forms, strict=True)
        if isinstance(form, NormalForm)
    ]
    answers = {
        "quipu": model_with_quipu(own).value[:, STEP],
        "normal_hit": np.array([value for value, _ in found]),
        "true_form": own.true_form_predictions()[:, STEP],
    }
    right = {
        name: (np.abs(values / own.truth[:, STEP] - 1.0) <= TOLERANCE).tolist() for name, values in answers.items()
    }
    return {"normal": [share for _, share in found], **right}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", type=int, default=25, help="functions per set of values")
    parser.add_argument("--seed", type=int, default=80)
    parser.add_argument("--sets", type=int, default=4, help="sets of values, of seeds that follow")
    parser.add_argument("--noise", type=float, nargs="+", default=NOISE, help="shares of the values")
    parser.add_argument("--extrap-python", type=Path, help="Python with Extra-P")
    parser.add_argument("--no-extrap", action="store_true", help="without Extra-P")
    parser.add_argument("--answers", type=Path, default=Path("build") / "extrap", help="folder of answers of Extra-P")
    options = parser.parse_args()
    python = None if options.no_extrap else options.extrap_python or interpreter()
    result: dict[str, dict[str, float]] = {}
    for layout in LAYOUTS:
        for noise in options.noise:
            right: dict[str, list[float]] = {}
            for seed in range(options.seed, options.seed + options.sets):
                own = planted_set(layout, 1, noise, options.functions, seed)
                truth = own.truth[:, STEP]
                answers = {"quipu": model_with_quipu(own).value[:, STEP]}
                if python is not None:
                    answers["extrap"] = model_with_extrap([own], python, options.answers)[own.name].predictions[:, STEP]
                corner = float(started(layout, 1, noise, seed)[1][0][-1])
                curves = _curves(own.points[:, 0], corner, float(own.targets[STEP, 0]))
                for name, known in (("normal", _normal), ("uniform", _uniform)):
                    found = [known(curves, values, noise) for values in own.values]
                    answers[f"{name}_hit"] = np.array([value for value, _ in found])
                    right.setdefault(name, []).extend(share for _, share in found)
                for name, values in answers.items():
                    right.setdefault(name, []).extend((np.abs(values / truth - 1.0) <= TOLERANCE).tolist())
            cell = f"{layout} m=1 {100 * noise:g}%"
            result[cell] = {name: percent(np.array(found)) for name, found in right.items()}
            print(f"{cell:24} {result[cell]}", flush=True)
    beyond = {}
    for layout, parameters in SEVERAL:
        parts = [
            several(layout, parameters, 0.05, options.functions, seed)
            for seed in range(options.seed, options.seed + options.sets)
        ]
        cell = f"{layout} m={parameters} 5%"
        beyond[cell] = {name: percent(np.concatenate([part[name] for part in parts])) for name in parts[0]}
        print(f"{cell:24} {beyond[cell]}", flush=True)
    print(json.dumps({"within5": result, "several": beyond, "functions": options.functions * options.sets}))


if __name__ == "__main__":
    main()
