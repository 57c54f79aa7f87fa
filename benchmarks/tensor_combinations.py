# SPDX-License-Identifier: Apache-2.0
"""Measure errors and coverage for combinations of two parameters that no training row has.

    make bench-tensor_combinations ARGS="--data DIR"

A corner consists of the rows of a set of `tensor_accuracy.py` that lie in the upper or lower part (15, 25 or 40 %) of
two parameters, or in some of their categories. The benchmark leaves out the rows of a corner. Models of 4096 other rows
predict these rows. `free` is the same tensor decomposition as `quipu`, but without regularization towards a
log-additive model, and without wider intervals for hidden combinations. Other models are from scikit-learn (`gaussian`
takes half a minute per corner).

The benchmark prints a line per corner. The last line is one JSON object:

- `mlogq` {model}: errors as in `tensor_accuracy.py`, geometric mean. `worst` {model}: largest |log(predicted /
  measured)|.
- `covered` {quipu, free}: share of the rows inside of their intervals.
- `hidden`: share of the rows that the model marks as hidden combinations.
- `ratio`: error of quipu / error of free.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from copy import copy
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.tensor import TensorModel
from quipu.modeling.tensor.support import Support
from tensor_peers import available, peer
from tensor_sets import SETS, Array, read
from threadpoolctl import threadpool_limits

TRAINED, LEAST_TESTED, PAIRS = 4096, 50, 5
PARTS = (0.15, 0.25, 0.4)
MODELS = "trees,histogram,neighbours,mlp"
Rows = NDArray[np.bool_]


def _part(random: np.random.Generator, column: Array, share: float, categorical: bool) -> Rows:
    """Return which rows are in the upper or lower part of a column, or in this number of its categories."""
    values = np.unique(column)
    if categorical:
        chosen = random.permutation(values)[: max(1, round(share * len(values)))]
        return np.isin(column, chosen)
    ranks = np.searchsorted(np.sort(column), column) / len(column)
    return ranks >= 1.0 - share if random.random() < 0.5 else ranks < share


def corners(folder: Path, name: str, seed: int) -> Iterator[tuple[str, Array, Array, Array, Array]]:
    """Yield the left-out corner, training rows and times, and the rows and times of the corner."""
    random = np.random.default_rng([seed, list(SETS).index(name)])
    x, y = read(folder, name, "train")
    pairs = list(combinations(range(x.shape[1]), 2))
    for place in random.permutation(len(pairs))[:PAIRS]:
        share = float(random.choice(PARTS))
        columns = pairs[place]
        parts = [_part(random, x[:, one], share, one in SETS[name].unordered) for one in columns]
        corner = parts[0] & parts[1]
        others, tested = np.flatnonzero(~corner), np.flatnonzero(corner)
        same = (x[others].min(axis=0) == x.min(axis=0)).all() and (x[others].max(axis=0) == x.max(axis=0)).all()
        if same and LEAST_TESTED <= len(tested) < len(others):
            train = random.permutation(others)[:TRAINED]
            names = " and ".join(SETS[name].columns[one] for one in columns)
            yield f"{name}: {share:.0%} of {names}", x[train], y[train], x[tested], y[tested]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the Parquet files of tensor_accuracy.py")
    parser.add_argument("--seeds", type=int, default=4, help="draws of pairs and corners for each set")
    parser.add_argument("--models", default=MODELS, help="models beside Quipu's, with commas")
    parser.add_argument("--budget", type=float, default=3.0, help="time_budget of the models")
    arguments = parser.parse_args()
    peers = [one for one in arguments.models.split(",") if one and available(one)]
    errors: dict[str, list[Array]] = {name: [] for name in ("quipu", "free", *peers)}
    covered: dict[str, list[float]] = {"quipu": [], "free": []}
    hidden: list[float] = []
    with threadpool_limits(1):
        for seed in range(arguments.seeds):
            for name in SETS:
                for label, x, y, x_test, y_test in corners(arguments.data, name, seed):
                    model = TensorModel(categorical=SETS[name].unordered, time_budget=arguments.budget).fit(x, y)
                    logs, free = np.log(y_test), copy(model)
                    free.support_ = Support()
                    for one, found in (("quipu", model), ("free", free)):
                        times, low, high = found.predict_interval(x_test)
                        errors[one].append(np.abs(np.log(times) - logs))
                        covered[one].append(float(np.mean((y_test >= low) & (y_test <= high))))
                    for one in peers:
                        predicted = peer(one, x, y, SETS[name].unordered)[0].predict(x_test)
                        errors[one].append(np.abs(np.log(predicted) - logs))
                    hidden.append(float(model.hidden(x_test).any(axis=1).mean()))
                    said = ", ".join(f"{one} {each[-1].mean():.3f}" for one, each in errors.items())
                    shares = ", ".join(f"{one} {share[-1]:.2f}" for one, share in covered.items())
                    print(
                        f"{label} ({len(y_test)} rows): {said}; covered {shares}; hidden {hidden[-1]:.2f}", flush=True
                    )
    mean = {one: float(np.exp(np.mean([np.log(each.mean()) for each in found]))) for one, found in errors.items()}
    result = {
        "corners": len(hidden),
        "mlogq": {one: round(value, 4) for one, value in mean.items()},
        "worst": {one: round(float(max(each.max() for each in found)), 1) for one, found in errors.items()},
        "covered": {one: round(float(np.mean(found)), 3) for one, found in covered.items()},
        "hidden": round(float(np.mean(hidden)), 3),
        "ratio": round(mean["quipu"] / mean["free"], 3),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
