# SPDX-License-Identifier: Apache-2.0
"""Measure how accurately a sort can be predicted: comparisons of std::sort in gathered samples, over sets of keys.

    make bench-sort_scatter

samplesort chooses splitters from 32 samples of each rank, and every rank sorts all samples. The number of comparisons
per rank is a linear function of log2(p), if enough samples are sorted that std::sort does more than insertions. The
benchmark counts the comparisons at 2 to 512 ranks for many sets of keys. It fits the line to 4 to 64 ranks of each set.
This is the accuracy of a model that knows the form and its first valid number of ranks, but has only one run of each
number of ranks. The line is also fitted to means of five sets, as campaigns with {repetition} measure them.

The last line is one JSON object:

- `scatter_4_to_64`, `scatter_512`: relative standard deviations over the sets.
- `beyond_line_2`: relative difference between the mean at 2 ranks and the line of the means at 4 to 64 ranks.
- `error_512`: root mean square of the relative errors at 512 ranks, over all fits and all sets.
- `error_512_from_2`: the same for fits that include 2 ranks. `error_512_of_5`: the same for fits to means of five sets.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

KEYS, SETS, OF_FIT = 4096, 40, 5
RANKS = (2, 4, 8, 16, 32, 64)
TARGET = 512
PROGRAM = Path(__file__).resolve().parent / "programs" / "sort_comparisons.cpp"
Floats = NDArray[np.float64]


def counted(program: Path, ranks: int) -> Floats:
    """Return the comparisons per rank of each set of keys, (SETS,)."""
    command = [str(program), str(KEYS), str(ranks), str(SETS)]
    return np.array(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(), dtype=float)


def predicted(counts: Floats, ranks: tuple[int, ...]) -> Floats:
    """Return the predictions at the target, (S,), of lines in log2(p) fitted to counts (len(ranks), S) at `ranks`.

    The fit minimizes relative deviations.
    """
    columns = np.stack([np.ones(len(ranks)), np.log2(ranks)], axis=1)
    target = np.array([1.0, np.log2(TARGET)])
    fits = [np.linalg.lstsq(columns / own[:, None], np.ones(len(own)), rcond=None)[0] for own in counts.T]
    return np.array([target @ fit for fit in fits])


def error(counts: Floats, ranks: tuple[int, ...], truth: Floats) -> float:
    """Return the root mean square of the relative errors of fits to counts (len(ranks), S) for each of truth (T,)."""
    return float(np.sqrt(np.mean((predicted(counts, ranks)[:, None] / truth - 1.0) ** 2)))


def main() -> None:
    """Count, fit, and print one line of JSON."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "sort_comparisons"
        subprocess.run(["g++", "-O2", "-std=c++17", str(PROGRAM), "-o", str(program)], check=True)
        counts = np.stack([counted(program, ranks) for ranks in RANKS])
        truth = counted(program, TARGET)
    spread = counts.std(axis=1) / counts.mean(axis=1)
    means = counts.mean(axis=1)
    slope, at_one = np.polyfit(np.log2(RANKS[1:]), means[1:], 1)
    for ranks, mean, own in zip(
        (*RANKS, TARGET), [*means, truth.mean()], [*spread, truth.std() / truth.mean()], strict=True
    ):
        print(f"{ranks:4d} ranks: {mean:.1f} comparisons per rank, scatter {100 * own:.1f} %")
    errors = {"error_512": error(counts[1:], RANKS[1:], truth), "error_512_from_2": error(counts, RANKS, truth)}
    several = counts.reshape(len(RANKS), -1, OF_FIT).mean(axis=2)
    errors[f"error_512_of_{OF_FIT}"] = error(several[1:], RANKS[1:], truth)
    result = {
        "scatter_4_to_64": float(spread[1:].mean()),
        "scatter_512": float(truth.std() / truth.mean()),
        "beyond_line_2": float(means[0] / (at_one + slope) - 1.0),
        **errors,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
