# SPDX-License-Identifier: Apache-2.0
"""Measure whether predictions improve if waiting is measured separately from transfer.

    make bench-separated_waiting

In each program, the root of a broadcast is late. The work of the root is constant, grows or falls with the number of
ranks, or depends on a problem size. The programs are simulated with 2, 4 and 8 ranks, and the time of computation is
effort × rate. Noise is added to transfer and waiting independently, or (`shared`) to the division of the time between
them. The time of MPI_Bcast at 64 ranks is predicted with and without wait_time, and compared with a simulation of 64
ranks.

The last line is one JSON object:

- `with`, `without`: geometric mean of the ratio of prediction and truth (at least 1), over all programs and seeds.
- `worst_program`: largest ratio `with` / `without` of a program and kind of noise. It is at most 1 if separating never
  makes a prediction worse.
- `programs`: both means of each program.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from delays import BIN, HEAD, RATE
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.analysis import analyze
from quipu.modeling.experiment import Experiment
from quipu.modeling.pmnf.model import Model
from quipu.modeling.rates import PathRates, Rates, to_document

SOURCE = (
    HEAD
    + """static void __attribute__((noinline)) sort_keys(long n) { turn(n); }
static void __attribute__((noinline)) even_work(long n) { turn(n); }
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int p, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long n = atol(argv[1]);
    static char data[1000000];
    for (int step = 0; step < 10; step++) {
        if (rank == 0) sort_keys(%(late)s);
        MPI_Bcast(data, sizeof data, MPI_CHAR, 0, MPI_COMM_WORLD);
        even_work(4 * n / p);
    }
    MPI_Finalize();
    return sink < 0.0;
}
"""
)
# By program: the work of the late root, the measured sizes, and the size of the target.
PROGRAMS = {
    "constant": ("n", (1_000_000,), 1_000_000),
    "more": ("n * p / 4", (1_000_000,), 1_000_000),
    "less": ("4 * n / p", (1_000_000,), 1_000_000),
    "size": ("n", (50_000, 100_000, 200_000, 400_000), 1_600_000),
}
MEASURED, TARGET = (2, 4, 8), 64
NOISES = ("separate", "shared")


def simulated(folder: Path, name: str, runs: str, ranks: int, size: int) -> None:
    """Add a run to an experiment."""
    parameters = ["--param", f"p={ranks}", *(["--param", f"n={size}"] if name == "size" else [])]
    how = ["--compute", "effort", "--rates", "app.rates", "-o", runs]
    command = ["smpirun", "-np", str(ranks), f"./{name}", str(size)]
    words = [str(BIN / "quipu"), "run", *how, *parameters, "--", *command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}: {done.stdout}{done.stderr}")


def noisy(experiment: Experiment, dice: np.random.Generator, kind: str, size: float) -> Experiment:
    """Return an experiment whose times are longer, or divided differently, by up to about twice this part."""
    time, wait = experiment.values["time"], np.nan_to_num(experiment.values["wait_time"])
    first, second = (np.abs(dice.normal(0.0, size, time.shape)) for _ in range(2))
    if kind == "separate":
        wait = wait * (1.0 + second)
        time = (time - np.nan_to_num(experiment.values["wait_time"])) * (1.0 + first) + wait
    else:
        time = time * (1.0 + first / 10.0)
        wait = np.clip(wait * (1.0 + dice.normal(0.0, size, time.shape)), 0.0, 0.98 * time)
    return replace(experiment, values={**experiment.values, "time": time, "wait_time": wait})


def without_waiting(experiment: Experiment) -> Experiment:
    """Return an experiment without the metric wait_time."""
    metrics = {name: own for name, own in experiment.metrics.items() if name != "wait_time"}
    values = {name: own for name, own in experiment.values.items() if name != "wait_time"}
    return replace(experiment, metrics=metrics, values=values)


def broadcast(experiment: Experiment) -> int:
    """Return the call path of MPI_Bcast."""
    return next(path for path in range(len(experiment.tree)) if experiment.tree.name(path) == "MPI_Bcast")


def error(experiment: Experiment, target: Experiment) -> float:
    """Return the logarithm of the ratio of the predicted and the true time of MPI_Bcast."""
    model = analyze(experiment).models("time")[broadcast(experiment)].model
    truth = float(target.values["time"][broadcast(target)].mean())
    assert isinstance(model, Model)
    return abs(math.log(max(float(model.evaluate(target.points)[0]), 1e-12) / truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    errors: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = Rates(("instructions",), PathRates((), (RATE,), 1.0, 0.0, 1, "all"))
        (folder / "app.rates").write_text(json.dumps(to_document(rates)))
        for program, (late, sizes, size) in PROGRAMS.items():
            (folder / f"{program}.c").write_text(SOURCE % {"late": late})
            compiler = [str(BIN / "quipu-smpicc"), "-O1", "-g", f"{program}.c", "-o", program]
            subprocess.run(compiler, cwd=folder, check=True)
            for ranks in MEASURED:
                for own in sizes:
                    simulated(folder, program, f"{program}.runs", ranks, own)
            simulated(folder, program, f"{program}.target", TARGET, size)
            experiment, target = (load_experiment(folder / f"{program}.{kind}") for kind in ("runs", "target"))
            for noise in NOISES:
                pair: tuple[list[float], list[float]] = [], []
                for number in range(2 * arguments.seeds):
                    dice = np.random.default_rng(number)
                    disturbed = noisy(experiment, dice, noise, 0.05 if number % 2 else 0.2)
                    pair[0].append(error(disturbed, target))
                    pair[1].append(error(without_waiting(disturbed), target))
                errors[f"{program}, {noise}"] = pair
                known, unknown = (math.exp(statistics.fmean(own)) for own in pair)
                print(f"{program:9} {noise:9} {known:.2f} times off with, {unknown:.2f} without", flush=True)
    means = {name: tuple(math.exp(statistics.fmean(own)) for own in pair) for name, pair in errors.items()}
    result = {
        "with": round(math.exp(statistics.fmean(own for pair in errors.values() for own in pair[0])), 4),
        "without": round(math.exp(statistics.fmean(own for pair in errors.values() for own in pair[1])), 4),
        "worst_program": round(max(known / unknown for known, unknown in means.values()), 4),
        "programs": {name: [round(own, 4) for own in pair] for name, pair in means.items()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
