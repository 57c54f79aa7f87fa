"""Models per CPU second against Extra-P 4.2.5, and 100,000 models of one parameter.

    make bench-modeling_speed [ARGS="--data FOLDER"]

Both modelers run on one core on the reference sets, data already read. The last line is one JSON object:
`speed_ratio` {p1, p2, p3} (bound: 100), models per CPU second of each, `many` {models, seconds, megabytes}
(bounds: 100,000 in 10 s below 1000 MB).
"""

from __future__ import annotations

import os

ONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
os.environ.update(ONE)  # before NumPy starts its threads

import argparse  # noqa: E402
import json  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402
from modeling_extrap import arguments_folder, interpreter, model_with_extrap  # noqa: E402
from modeling_sets import PlantedSet, fresh_set, reference_sets  # noqa: E402
from quipu.modeling.experiment import Metric  # noqa: E402
from quipu.modeling.pmnf import fit_models  # noqa: E402

TIME = Metric("time", "s", "cost")
EACH = 5
MANY = 100_000


def seconds(own: PlantedSet) -> float:
    """Return the CPU seconds of modeling a set once."""
    started = time.process_time()
    models = fit_models(own.points, own.values, TIME, own.parameters)
    passed = time.process_time() - started
    assert len(models) == len(own.far)
    return passed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=arguments_folder(), help="folder of the reference sets")
    parser.add_argument("--extrap-python", type=Path, help="Python of an environment with Extra-P")
    parser.add_argument("--rounds", type=int, default=3, help="runs of Extra-P, each with some of Quipu")
    options = parser.parse_args()
    sets = reference_sets(options.data)
    python = options.extrap_python or interpreter()
    rates: dict[str, dict[str, float]] = {}
    for own in sets:
        seconds(own)  # the first one also loads libraries
        mine, theirs = [], []
        for _ in range(options.rounds):  # alternated, as the load of the machine changes
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
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
