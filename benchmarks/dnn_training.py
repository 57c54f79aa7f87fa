# SPDX-License-Identifier: Apache-2.0
"""Train the network of the DNN-based modeler on synthetic noisy lines, for the evaluation of priors.

    make bench-dnn_training [ARGS="--lines 400000"]

The weights are not part of the repository. benchmarks/priors_evaluation.py reads them from build/dnn. At the first use,
it derives networks for the positions and the noise of a set of measurements from this network, and stores them in the
same folder.

The last line is one JSON object: `minutes`, `lines`, and the share of lines with correct exponents, by noise.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
from dnn_network import CLASSES, Chunk, Network, chunks_of, train

FOLDER = Path(__file__).resolve().parents[1] / "build" / "dnn"
# Extra-P's categories of noise: the range of repetitions as a share of their mean.
NOISE = (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
_LINES, _LINES_PER_CLASS = 400_000, 200
_RATE, _RETRAINING_RATE = 1e-3, 3e-4
_TESTED = 43 * 100


def base_file(folder: Path = FOLDER) -> Path:
    """Return the file of the network for lines of any positions and noise."""
    return folder / "any-line.npz"


@lru_cache(maxsize=2 * len(NOISE))
def adapted(positions: tuple[float, ...], noise: float, folder: Path = FOLDER) -> Network:
    """Return the network for lines of these positions and noise; train it if necessary."""
    file = folder / f"{'-'.join(f'{x:g}' for x in positions)}_{noise:g}.npz"
    if not file.exists():
        print(f"training the network for lines at {positions} with noise of {noise:.2%}", flush=True)
        random = np.random.default_rng([2, len(positions)])
        lines = chunks_of(_LINES_PER_CLASS * len(CLASSES), random, np.array(positions), noise)
        train(Network.load(base_file(folder)), lines, _RETRAINING_RATE, seed=2).save(file)
    return Network.load(file)


def accuracy(network: Network, noise: float) -> float:
    """Return the share of new lines with the correct class."""
    inputs, labels = next(chunks_of(_TESTED, np.random.default_rng(3), None, noise))
    return float((network.classes(inputs) == labels).mean())


def _told(chunks: Iterator[Chunk], lines: int) -> Iterator[Chunk]:
    """Yield the chunks of training lines, and print the progress."""
    done = 0
    for chunk in chunks:
        yield chunk
        before, done = done, done + len(chunk[1])
        if 10 * done // lines > 10 * before // lines:
            print(f"trained on {done} of {lines} lines", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=_LINES, help=f"training lines ({_LINES})")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the networks")
    options = parser.parse_args()
    started = time.perf_counter()
    network = train(None, _told(chunks_of(options.lines, np.random.default_rng(1)), options.lines), _RATE, seed=1)
    network.save(base_file(options.folder))
    minutes = (time.perf_counter() - started) / 60
    found = {f"{noise:g}": round(accuracy(network, noise), 3) for noise in NOISE}
    print(json.dumps({"minutes": round(minutes, 2), "lines": options.lines, "exact_by_noise": found}))


if __name__ == "__main__":
    main()
