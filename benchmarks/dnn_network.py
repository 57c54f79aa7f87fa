# SPDX-License-Identifier: Apache-2.0
"""Define the network of the DNN-based modeler. It classifies the exponents of a noisy line of measurements.

Source: Ritter et al., IPDPS 2021, as described by de Morais et al. (section II): 11 inputs, hidden layers of 1500,
1500, 750, 250 and 250 neurons with tanh, and softmax over 43 classes of exponents. As in the adaptive modeler of
Extra-P, the inputs are the values divided by their positions, in buckets of positions scaled to 64. Here, the inputs
are also divided by the largest input. Otherwise, a network that was trained on values of about 1000 would treat
microseconds as a constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
# Inputs (L, 11) and classes (L,) of training lines.
Chunk = tuple[Singles, Integers]

HIDDEN = (1500, 1500, 750, 250, 250)
BUCKETS = np.array([1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64], dtype=np.float64)
# The default search space of Extra-P: powers, grouped by their number of logarithms.
_POWERS = {
    (0, 1, 2): "0 1/4 1/3 1/2 2/3 3/4 1 3/2 2 5/2",
    (0, 1): "5/4 4/3 3",
    (0,): "4/5 5/3 7/4 9/4 7/3 8/3 11/4",
}
CLASSES = sorted((Fraction(power), log) for logs, powers in _POWERS.items() for power in powers.split() for log in logs)
# Range of the coefficients of training lines; number of repetitions whose mean has the noise (a Bates distribution).
_COEFFICIENTS, _REPETITIONS = (1e-3, 1e3), 5
_BATCH, _CHUNK = 256, 43 * 200


@dataclass(frozen=True, eq=False)
class Network:
    """Weights and biases of the layers, the first one next to the inputs."""

    weights: list[Singles]
    biases: list[Singles]

    def classes(self, inputs: Singles) -> Integers:
        """Return the number of the most likely class of each line (L, 11)."""
        signal = inputs
        for number, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            signal = signal @ weights + bias
            if number < len(HIDDEN):
                signal = np.tanh(signal)
        return np.asarray(signal.argmax(axis=1), dtype=np.int64)

    def save(self, file: Path) -> None:
        """Write the network as arrays of NumPy."""
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part.npz")
        np.savez(part, *self.weights, *self.biases)
        part.replace(file)

    @classmethod
    def load(cls, file: Path) -> Network:
        """Read a network; arrays only, nothing that could be executed."""
        with np.load(file, allow_pickle=False) as found:
            arrays = [found[name] for name in found.files]
        return cls(arrays[: len(HIDDEN) + 1], arrays[len(HIDDEN) + 1 :])


def inputs_of(positions: Floats, values: Floats) -> Singles:
    """Return the inputs (L, 11) of lines: positions and values (L, K), NaN where a line has fewer points.

    Each point goes to the nearest bucket, and a bucket takes its nearest point; buckets without a point are 0.
    """
    scaled = positions * (BUCKETS[-1] / np.nanmax(positions, axis=1, keepdims=True))
    ratio = values / positions
    largest = np.nanmax(np.abs(ratio), axis=1, keepdims=True)
    ratio = ratio / np.where(largest > 0, largest, 1.0)
    distance = np.abs(scaled[:, :, None] - BUCKETS)
    distance = np.where(np.isnan(distance), np.inf, distance)
    own = distance == distance.min(axis=2, keepdims=True)
    point = np.where(own, distance, np.inf).argmin(axis=1)
    filled = (own & np.isfinite(distance)).any(axis=1)
    result = np.where(filled, np.take_along_axis(ratio, point, axis=1), 0.0)
    return np.nan_to_num(result).astype(np.float32)


def training_lines(positions: Floats, noise: Floats, labels: Integers, random: np.random.Generator) -> Chunk:
    """Return inputs and classes of lines c0 + c1·x^i·log2^j(x) with noise.

    positions: (L, K) or (1, K); noise: (L,) range of the noise of one value as a share (0.2 is ±10 %).
    """
    powers = np.array([float(power) for power, _ in CLASSES])[labels, None]
    logs = np.array([log for _, log in CLASSES])[labels, None]
    first, second = random.uniform(*_COEFFICIENTS, (2, len(labels), 1))
    values = first + second * positions**powers * np.log2(positions) ** logs
    spread = random.uniform(-0.5, 0.5, (*values.shape, _REPETITIONS)).mean(axis=2)
    values = values * (1.0 + noise[:, None] * spread)
    return inputs_of(np.broadcast_to(positions, values.shape), values), labels


def random_positions(lines: int, random: np.random.Generator) -> Floats:
    """Return positions (lines, 11) of 5 to 11 points: a third each linear, doubling and random; NaN behind the last."""
    most = len(BUCKETS)
    steps = np.arange(most)
    first = np.exp(random.uniform(0.0, np.log(2000.0), (lines, 1)))
    linear = first * (1.0 + random.choice([0.25, 0.5, 1.0, 2.0], (lines, 1)) * steps)
    doubling = np.minimum(first, 256.0) * 2.0**steps
    mixed = first * (1.0 + np.sort(random.uniform(0.0, 20.0, (lines, most)), axis=1))
    kind = random.integers(0, 3, (lines, 1))
    found = np.where(kind == 0, linear, np.where(kind == 1, doubling, mixed))
    length = random.integers(5, most + 1, (lines, 1))
    result: Floats = np.where(steps < length, found, np.nan)
    return result


def train(network: Network | None, chunks: Iterator[Chunk], rate: float, seed: int) -> Network:
    """Return a network trained on chunks of lines with the optimizer Adam, from these weights or from random ones."""
    classifier = _classifier(rate, seed)
    inputs, labels = next(chunks)
    everything = np.arange(len(CLASSES))
    classifier.partial_fit(inputs, labels, classes=everything)
    if network is not None:
        # The optimizer holds these arrays, so the code fills them and does not replace them.
        for own, given in zip(
            [*classifier.coefs_, *classifier.intercepts_], [*network.weights, *network.biases], strict=True
        ):
            own[...] = given
        classifier.partial_fit(inputs, labels)
    for inputs, labels in chunks:
        classifier.partial_fit(inputs, labels)
    return Network([own.copy() for own in classifier.coefs_], [own.copy() for own in classifier.intercepts_])


def _classifier(rate: float, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    training = {"solver": "adam", "alpha": 0.0, "batch_size": _BATCH, "learning_rate_init": rate, "random_state": seed}
    return MLPClassifier(HIDDEN, activation="tanh", **training)


def chunks_of(
    lines: int, random: np.random.Generator, positions: Floats | None = None, noise: float | None = None
) -> Iterator[Chunk]:
    """Yield this number of training lines in chunks, with all classes equally often.

    positions: (K,) of the lines to model, None for random ones; noise: the range of the noise, None for any up to 1.
    """
    for start in range(0, lines, _CHUNK):
        labels = random.permutation(np.arange(min(_CHUNK, lines - start)) % len(CLASSES))
        where = random_positions(len(labels), random) if positions is None else positions[None]
        spread = random.uniform(0.0, 1.0, len(labels)) if noise is None else np.full(len(labels), noise)
        yield training_lines(where, spread, labels, random)
