# SPDX-License-Identifier: Apache-2.0
"""Measure models per CPU second, compared with Extra-P 4.2.5, and the time for 100,000 models of one parameter.

    make bench-modeling_speed [ARGS="--data FOLDER"]

Both modelers run on one core on the same sets, after the data were read. The sets are planted functions, or the sets of
a folder.

The last line is one JSON object:

- `speed_ratio` {p1, p2, p3} (bound: 100): models per CPU second of Quipu / of Extra-P, for one to three parameters.
  `models_per_cpu_second` {p1, p2, p3}: both rates, and their ratio.
- `many` {models, seconds, megabytes}: 100,000 models (bounds: 10 s, 1000 MB).
- `inexact` {call_paths, per_cpu_second, by_kind}: counts that no function reproduces (bound: 2000 call paths per CPU
  second). `--inexact-only` only measures these.
"""

from __future__ import annotations

import os

ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ.update(ONE)  # before NumPy starts its threads

import argparse  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
from modeling_extrap import interpreter, model_with_extrap  # noqa: E402
from modeling_sets import Floats, PlantedSet, fresh_set, reference_sets  # noqa: E402
from quipu.modeling.experiment import Metric  # noqa: E402
from quipu.modeling.pmnf import fit_models  # noqa: E402

TIME = Metric("time", "s", "cost")
BLOCKS = Metric("blocks", "1", "effort")
EACH = 5
MANY = 100_000
PLANTED = {1: 1000, 2: 100, 3: 100}  # functions by their number of parameters
INEXACT = 1000  # call paths of each kind
Counts = Callable[..., Floats]
# Counts of p processes and n elements, with two coefficients. Work that depends on data deviates from them by 1 %.
DEVIATING: tuple[Counts, ...] = (
    lambda p, n, c: c[0] * n + c[1] + 0 * p,
    lambda p, n, c: c[0] * n * np.log2(n) + c[1] * n + 0 * p,
    lambda p, n, c: c[0] * n**1.5 + c[1] * n + 0 * p,
    lambda p, n, c: c[0] * n * np.log2(p) + c[1] * n,
    lambda p, n, c: c[0] * n / p + 0 * n,
    lambda p, n, c: c[0] * n * p + c[1],
    lambda p, n, c: c[0] * (n + 2000 * p),
)
# Counts of loops over shares, blocks and roots, whose sizes are rounded to whole numbers.
ROUNDED: tuple[Counts, ...] = (
    lambda p, n, c: 2 + c[0] * np.ceil(n / p),
    lambda p, n, c: c[0] * np.ceil(n / p) + c[1] * np.round(n**0.5),
    lambda p, n, c: c[0] * np.floor(n / p) * np.ceil(np.log2(p)) + c[1],
    lambda p, n, c: c[0] * np.ceil(n / np.sqrt(p)) + c[1] * n,
    lambda p, n, c: c[0] * np.round(n ** (2 / 3)) + c[1] * p,
)


def seconds(own: PlantedSet) -> float:
    """Return the CPU seconds of modeling a set once."""
    started = time.process_time()
    models = fit_models(own.points, own.values, TIME, own.parameters)
    passed = time.process_time() - started
    assert len(models) == len(own.far)
    return passed


def planted_sets(seed: int) -> list[PlantedSet]:
    """Return sets of one, two and three parameters, five values of each, with noise of 5 %."""
    return [replace(fresh_set(m, 0.05, count, seed), name=f"p{m}") for m, count in PLANTED.items()]


def inexact_counts() -> dict[str, tuple[Floats, Floats]]:
    """Return points (C, 2) and counts (N, C) of call paths by kind, of which nearly none are exact functions."""
    random = np.random.default_rng(5)
    found = {}
    for kind, least in (("deviating", 1.0), ("deviating from 2", 2.0), ("rounded", 2.0), ("rounded sizes", 3.0)):
        points = np.array([(p, n) for p in least * 2.0 ** np.arange(5) for n in (4099.0, 8191, 16411, 32771, 65521)])
        shapes = DEVIATING if "deviating" in kind else ROUNDED
        counts = []
        for number in range(INEXACT):
            own = shapes[number % len(shapes)](*points.T, random.integers(1, 60, 2).astype(float))
            if shapes is DEVIATING:
                own = own * (1 + 0.01 * random.standard_normal(len(points)))
            counts.append(np.round(own))
        found[kind] = points, np.array(counts)
    return found


def measure_inexact() -> dict[str, object]:
    """Return call paths per CPU second of all counts that are not exact, and of each kind."""
    rates, total, spent = {}, 0, 0.0
    for kind, (points, counts) in inexact_counts().items():
        fit_models(points, counts[:20, :, None], BLOCKS, ("p", "n"))  # fills tables that are computed only once
        started = time.process_time()
        fit_models(points, counts[:, :, None], BLOCKS, ("p", "n"))
        took = time.process_time() - started
        rates[kind] = round(len(counts) / took)
        total, spent = total + len(counts), spent + took
    return {"call_paths": total, "per_cpu_second": round(total / spent), "by_kind": rates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of sets to take instead of planted ones")
    parser.add_argument("--seed", type=int, default=1, help="of the planted sets")
    parser.add_argument("--extrap-python", type=Path, help="Python of an environment with Extra-P")
    parser.add_argument("--rounds", type=int, default=3, help="runs of Extra-P, each with some of Quipu")
    parser.add_argument("--inexact-only", action="store_true", help="only counts that are not exact")
    options = parser.parse_args()
    inexact = measure_inexact()
    print(f"counts that are not exact: {inexact}", flush=True)
    if options.inexact_only:
        print(json.dumps({"inexact": inexact}))
        return
    sets = reference_sets(options.data) if options.data else planted_sets(options.seed)
    python = options.extrap_python or interpreter()
    rates: dict[str, dict[str, float]] = {}
    for own in sets:
        seconds(own)  # not counted, because the first call also loads libraries
        mine, theirs = [], []
        for _ in range(options.rounds):  # in turn, because the load of the machine changes
            theirs.append(model_with_extrap([own], python)[own.name].seconds)
            mine += [seconds(own) for _ in range(EACH)]
        ours, extrap, count = float(np.median(mine)), float(np.median(theirs)), len(own.far)
        rates[own.name] = {"quipu": round(count / ours, 1), "extrap": round(count / extrap, 1)}
        rates[own.name]["ratio"] = round(extrap / ours, 1)
        print(f"{own.name}: models per CPU second {rates[own.name]}", flush=True)
    many = fresh_set(1, 0.05, MANY, 1)
    took = seconds(many)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{MANY} models of one parameter: {took:.2f} s, {megabytes:.0f} MB")
    answer = {
        "speed_ratio": {name: rate["ratio"] for name, rate in rates.items()},
        "models_per_cpu_second": rates,
        "many": {"models": MANY, "seconds": round(took, 2), "megabytes": round(megabytes)},
        "inexact": inexact,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
