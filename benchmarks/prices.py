# SPDX-License-Identifier: Apache-2.0
"""Learn the penalties of factors (modeling/counts/prices.py) from the corpus.

    make bench-prices                 prints the learned penalties
    make bench-prices ARGS=--write    writes them

Many products of factors reproduce a count. The count at the target shows which of these products are correct. The
penalties maximize the likelihood of the correct products of all programs. The weight of a program grows with the square
root of its number of counts. The weight of a count grows with the logarithm of its number of occurrences. Programs that
are put aside are not read. A kind of factor that the corpus does not distinguish keeps its penalty.

The last line is a JSON object with mean bits of the correct products: with the present penalties (`now`), with
penalties learned from the other programs (`left_out`), and with penalties learned from all programs (`learned`).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
import quipu.modeling.counts.prices as table
from numpy.typing import NDArray
from programs_corpus import Program, experiment_of, programs, unpack
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.counts.factors import Factor
from quipu.modeling.counts.laws import alternatives, coefficient_bits, distinct, structure
from quipu.modeling.counts.predictions import count_models
from quipu.modeling.counts.prices import PRICES
from quipu.modeling.experiment import Experiment, FloatArray, mean_over_repetitions
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Example = tuple[Floats, NDArray[np.bool_], float]  # counts (products, kinds), mask of correct products, weight

KINDS = list(PRICES)
LEAST = {"missing": 2.5, "twice": 2.5}  # lower bounds of these penalties (bits)
LEAST_OF_OTHERS, MOST = 0.5, 14.0
STAY = 0.1  # nats × the square of the distance of a penalty from its previous value
RIGHT = 1e-6  # relative distance of a correct prediction from the value at the target
MOST_BITS = 30.0  # largest penalty of one count
SLOW = ("cloverleaf3d", "minimd", "minisweep", "minivite", "minixyce")  # each takes minutes


def main() -> int:
    """Learn the penalties and print them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all that are fast without names")
    parser.add_argument("--write", action="store_true", help="write the prices to modeling/counts/prices.py")
    given = parser.parse_args()
    chosen = [one for one in programs(given.names) if not one.put_aside and (given.names or one.name not in SLOW)]
    examples: dict[str, list[Example]] = {}
    for program in chosen:
        examples[program.name] = found = examples_of(program)
        print(f"{program.name}: {len(found)} counts", flush=True)
    examples = {name: found for name, found in examples.items() if found}
    now = np.array([PRICES[kind] for kind in KINDS])
    left_out = {name: cost(learn(others(examples, name), now), examples[name])[0] for name in examples}
    learned = learn(list(examples.values()), now)
    for kind, before, after in zip(KINDS, now.tolist(), learned.tolist(), strict=True):
        print(f"{kind:18} {before:5.1f} {after:5.1f}")
    if given.write:
        write(dict(zip(KINDS, learned.tolist(), strict=True)))
    result = {
        "programs": len(examples),
        "now": round(float(np.mean([cost(now, found)[0] for found in examples.values()])), 3),
        "left_out": round(float(np.mean(list(left_out.values()))), 3),
        "learned": round(float(np.mean([cost(learned, found)[0] for found in examples.values()])), 3),
    }
    print(json.dumps(result))
    return 0


def examples_of(program: Program) -> list[Example]:
    """Return the products of each count of a program under the process grid that explains most of them."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = unpack(program, Path(scratch))
        experiment, target = experiment_of(program, folder, "alone"), load_experiment(folder / "target")
        models = count_models(experiment)
        if models is None:
            return []
        here, there = (counts_of(one, models.metrics) for one in (experiment, target))
        fitted = next(iter(models.models.values()))[0].program
    point = tuple(float(target.points[0][target.parameters.index(name)]) for name in experiment.parameters)
    truths: dict[bytes, float] = {}
    occurrences: Counter[bytes] = Counter()
    for identity, counts in here.items():
        if identity in there and there[identity][0] > 0 and counts.any():
            scale = float(counts.max())
            key = (counts / scale).tobytes()
            truths.setdefault(key, float(there[identity][0]) / scale)
            occurrences[key] += 1
    by_grid: dict[int, list[Example]] = defaultdict(list)
    explained: Counter[int] = Counter()
    for key, truth in truths.items():
        counts = np.frombuffer(key)
        for number, grid in fitted.grids.items():
            place = grid.place(point)
            rows, right = [], []
            library = grid.library(counts > 0)
            for coefficient, factors, more in alternatives(counts, library, grid.indicators, grid.hidden):
                if not more:
                    value = coefficient * np.prod([place.values[grid.numbers[one.name]] for one in factors])
                    rows.append(features(factors, grid.dimensions, coefficient / float(counts[counts > 0].min())))
                    right.append(bool(abs(value - truth) <= RIGHT * truth))
            explained[number] += any(right)
            if any(right) and not all(right):
                by_grid[number].append((np.array(rows), np.array(right), float(np.log2(1 + occurrences[key]))))
    most = max(explained.values(), default=0)
    return by_grid[min(number for number in fitted.grids if explained[number] >= 0.95 * most - 0.5)]


def counts_of(experiment: Experiment, metrics: Sequence[str]) -> dict[Hashable, FloatArray]:
    """Return the distinct counts of classes, visits, messages and bytes, summed over ranks."""
    ranks = experiment.points[:, experiment.parameters.index("p")]
    found: dict[Hashable, FloatArray] = {}
    classes = experiment.classes.vectors if experiment.classes is not None else None
    if classes is not None:
        effort = np.array([classes.effort[name] for name in sorted(classes.effort)]).T.tolist()
        for row, (path, place) in enumerate(zip(classes.callpath.tolist(), classes.places, strict=True)):
            identity = (experiment.tree.key(path), place, *effort[row])
            found[identity] = found.get(identity, 0.0) + classes.counts[row]
    for name in metrics:
        if (classes is None or name not in classes.effort) and name in experiment.values:
            values = np.nan_to_num(mean_over_repetitions(experiment.values[name])) * ranks
            for path in np.flatnonzero(~experiment.tree.start_and_end).tolist():
                found[name, experiment.tree.key(path)] = values[path]
    return found


def features(factors: Sequence[Factor], dimensions: int, coefficient: float) -> Floats:
    """Return how often a product contains each kind of factor."""
    found = np.zeros(len(KINDS))
    for factor in distinct(factors):
        if factor.kind in KINDS:  # the penalty of a line of neighbours is the sum of its parts
            found[KINDS.index(factor.kind)] += 1
        found[KINDS.index("number")] += factor.number
    found[KINDS.index("factor")] = len(factors)
    for name, count in structure(factors, dimensions).items():
        found[KINDS.index(name)] = count
    found[KINDS.index("coefficient")] = coefficient_bits(np.array([coefficient]))[0]
    return found


def others(examples: dict[str, list[Example]], name: str) -> list[list[Example]]:
    """Return the examples of all other programs."""
    return [found for other, found in examples.items() if other != name]


def cost(prices: Floats, examples: Sequence[Example]) -> tuple[float, Floats]:
    """Return the mean bits of the correct products, and the derivative by the penalties."""
    total, slope, weights = 0.0, np.zeros(len(KINDS)), 0.0
    for products, right, weight in examples:
        bits = products @ prices
        share = 2.0 ** (bits.min() - bits)
        own = np.where(right, share, 0.0)
        missed = -np.log2(max(own.sum() / share.sum(), 2.0**-MOST_BITS))
        total += weight * missed
        if missed < MOST_BITS:
            slope += weight * (own @ products / own.sum() - share @ products / share.sum())
        weights += weight
    return total / weights, slope / weights


def learn(programs_of: Sequence[list[Example]], now: Floats) -> Floats:
    """Return the penalties that maximize the likelihood of the correct products of all programs."""

    def loss(prices: Floats) -> tuple[float, Floats]:
        parts = [(np.sqrt(len(found)), *cost(prices, found)) for found in programs_of]
        away = prices - now
        value = sum(size * missed for size, missed, _ in parts) + STAY * float(away @ away)
        return value, sum((size * slope for size, _, slope in parts), 2 * STAY * away)

    bounds = [(LEAST.get(kind, LEAST_OF_OTHERS), MOST) for kind in KINDS]
    return np.asarray(minimize(loss, now, jac=True, method="L-BFGS-B", bounds=bounds).x)


def write(prices: dict[str, float]) -> None:
    """Write penalties to the table of the modeler."""
    file = Path(str(table.__file__)).resolve()
    text = file.read_text(encoding="utf-8")
    for kind, bits in prices.items():
        text = re.sub(rf'("{re.escape(kind)}": )[\d.]+,', rf"\g<1>{bits:.1f},", text)
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
