# SPDX-License-Identifier: Apache-2.0
"""Counts that are nearly functions of the parameters: data-dependent work with deviations of 0.1 to 1 %."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf.model import Model
from quipu.modeling.pmnf.modeler import fit_models

BLOCKS = Metric("blocks", "1", "effort")
N = np.array([4096.0, 8192, 16384, 32768, 65536])
P = np.array([1.0, 2, 4, 8])
FAR = np.array([32.0, 262144.0])  # two steps out
Count = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]

# count of (p, n, coefficients), leading exponents in p and n
PLANTED: list[tuple[str, Count, tuple[Fraction | int, int], tuple[Fraction | int, int]]] = [
    ("n", lambda p, n, c: c[0] * n + c[1] + 0 * p, (0, 0), (1, 0)),
    ("n log n + n", lambda p, n, c: c[0] * n * np.log2(n) + c[1] * n + 0 * p, (0, 0), (1, 1)),
    ("n^1.5 + n", lambda p, n, c: c[0] * n**1.5 + c[1] * n + 0 * p, (0, 0), (Fraction(3, 2), 0)),
    ("n²", lambda p, n, c: c[0] * n**2 + c[1] * n + 0 * p, (0, 0), (2, 0)),
    ("n³", lambda p, n, c: c[0] * n**3 + c[1] * n**2 + 0 * p, (0, 0), (3, 0)),
    ("n log p", lambda p, n, c: c[0] * n * np.log2(p) + c[1] * n, (0, 1), (1, 0)),
    ("n/p", lambda p, n, c: c[0] * n / p + 0 * n, (-1, 0), (1, 0)),
    ("n p", lambda p, n, c: c[0] * n * p + c[1], (1, 0), (1, 0)),
    ("n, weak p", lambda p, n, c: c[0] * (n + 2000 * p), (1, 0), (1, 0)),
    ("n, weak log p", lambda p, n, c: c[0] * n * (1 + 0.1 * np.log2(p)), (0, 1), (1, 0)),
]


def _deviating(
    count: Count, deviation: float, seed: int, number: int = 20
) -> tuple[FloatArray, FloatArray, FloatArray]:
    random = np.random.default_rng(seed)
    points = np.array([(p, n) for p in P for n in N])
    exact, far = [], []
    for _ in range(number):
        c = random.integers(1, 60, 2).astype(float)
        exact.append(count(points[:, 0], points[:, 1], c))
        far.append(float(count(FAR[:1], FAR[1:], c)[0]))
    values = np.array(exact)
    return points, np.round(values * (1 + deviation * random.standard_normal(values.shape))), np.array(far)


@pytest.mark.parametrize("deviation", [0.001, 0.003, 0.01])
def test_leading_exponents_of_deviating_counts(deviation: float) -> None:
    right = []
    for seed, (name, count, lead_p, lead_n) in enumerate(PLANTED):
        points, values, far = _deviating(count, deviation, seed)
        for model, truth in zip(fit_models(points, values[:, :, None], BLOCKS, ("p", "n")), far, strict=True):
            assert isinstance(model, Model), name
            right.append(model.lead("p") == lead_p and model.lead("n") == lead_n)
            assert 0.5 < model.at(p=FAR[0], n=FAR[1]) / truth < 2, (name, str(model))
    assert np.mean(right) >= 0.97


@pytest.mark.parametrize(
    "counts",
    [
        [40.0, 56, 73, 100],  # no term of the library: something between log2(p) and p
        [1150.0, 2200, 4300, 8500],
        [81.0, 510, 1224, 3299],
        [100.0, 100.3, 100.1, 104],
    ],
)
def test_few_values_do_not_carry_steep_growth(counts: list[float]) -> None:
    """Four values of p, equal for every n: two terms or a cube would follow the deviations."""
    points = np.array([(p, n) for p in P for n in N])
    values = np.repeat(np.array(counts), N.size)[None, :, None]
    (model,) = fit_models(points, values, BLOCKS, ("p", "n"))
    assert isinstance(model, Model)
    assert model.lead("n") == (0, 0)
    assert model.lead("p")[0] <= Fraction(3, 2)
    slope = counts[-1] / counts[-2]
    assert model.at(p=4096, n=65536) < counts[-1] * slope**9 * 4


def test_points_on_no_lines() -> None:
    random = np.random.default_rng(3)
    points = np.stack([random.uniform(2, 64, 30), random.uniform(10, 1000, 30)], axis=1)
    values = 7 * points[:, 1] * points[:, 0] * (1 + 0.002 * random.standard_normal(30))
    (model,) = fit_models(points, values[None, :, None], BLOCKS, ("p", "n"))
    assert isinstance(model, Model)
    assert model.leading == {"p": (1, 0), "n": (1, 0)}


def test_growth_is_not_given_up_for_shares_of_few_processes() -> None:
    """Pairs of points in neighbouring strips: n², less than 1/p of it at each of three numbers of processes."""
    shares = {1.0: 1.0, 2.0: 0.5013, 4.0: 0.1615}
    points = np.array([(p, n) for p in shares for n in (1024.0, 2048, 4096, 8192)][:-1])
    values = np.array([[round(shares[p] * (1.006 * n**2 + 40 * n + 37 * p * np.sin(n))) for p, n in points]])
    model = fit_models(points, values[:, :, None], BLOCKS, ("p", "n"))[0]
    assert isinstance(model, Model)
    assert model.lead("n") == (2, 0), str(model)
    truth = shares[4.0] * (1.006 * 8192**2 + 40 * 8192)
    assert 0.6 < model.at(p=4.0, n=8192.0) / truth < 1.4, str(model)


@pytest.mark.parametrize(
    "count",
    [
        lambda n: 0.5 * n**2 + 100 * n * np.log2(n) - 82.5 * n,  # a heap, searches and all pairs
        lambda n: 3 * n * np.log2(n) - 2.5 * n,  # searches that double their steps
        lambda n: 210 * n * np.log2(n) + 107 * n,  # a sort of short parts and insertions
    ],
)
def test_lower_terms_that_show_are_kept(count: Callable[[FloatArray], FloatArray]) -> None:
    n = 125.0 * np.array([1.0, 2, 4, 8, 16, 32])
    random = np.random.default_rng(11)
    noise = 0.002 * (n[0] / n[:, None]) ** 0.5 * random.standard_normal((6, 5))
    values = np.round(count(n)[:, None] * (1 + noise))
    (model,) = fit_models(n[:, None], values[None], BLOCKS, ("n",))
    assert isinstance(model, Model)
    assert model.at(n=8 * n[-1]) == pytest.approx(float(count(8 * n[-1:])[0]), rel=0.01), str(model)


def test_counts_at_scattered_points() -> None:
    """For scattered points, the criterion selects visible growth, and otherwise the constant."""
    random = np.random.default_rng(11)
    points = np.stack([2.0 ** random.uniform(1, 6, 24), 2.0 ** random.uniform(6, 13, 24)], axis=1)
    p, n = points.T
    exact = np.stack([7.0 * n * np.log2(n), 40.0 * n + 900.0 * p, 5.0 * n * p, np.full(24, 5000.0)])
    counts = np.round(exact * (1 + 0.01 * random.standard_normal(exact.shape)))
    models = fit_models(points, counts[:, :, None], BLOCKS, ("p", "n"))
    far = {"p": 256.0, "n": 65536.0}
    truth = [7.0 * 65536 * 16, 40.0 * 65536 + 900.0 * 256, 5.0 * 65536 * 256, 5000.0]
    for model, value in zip(models, truth, strict=True):
        assert isinstance(model, Model)
        assert model.at(**far) == pytest.approx(value, rel=0.05)
        assert model.is_constant == (value == 5000.0)


# Iterations of conjugate gradients to a tolerance on n × n cells with five random right sides, and at n = 512.
ITERATIONS = {
    16: [51, 51, 51, 51, 51],
    24: [76, 75, 75, 76, 76],
    32: [100, 100, 100, 101, 99],
    40: [124, 123, 123, 124, 125],
    48: [148, 147, 147, 147, 149],
    64: [194, 194, 193, 192, 196],
}
ITERATIONS_AT_512 = 1500


def test_counts_that_chance_changes_do_not_follow_a_function_within_rounding() -> None:
    """n^(2/3)·log2(n) is within one or two of the means of twice as many, and 23 % off there."""
    sizes = np.array([list(map(float, ITERATIONS))]).T
    runs = np.array(list(ITERATIONS.values()), dtype=np.float64)
    for times in (1, 2):
        (model,) = fit_models(sizes, (times * runs)[None], BLOCKS, ("n",))
        assert isinstance(model, Model)
        assert model.predict([512.0]).value == pytest.approx(times * ITERATIONS_AT_512, rel=0.03)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alone", [0.02, 0.4])
def test_what_one_process_counts_makes_no_function_of_its_own(seed: int, alone: float) -> None:
    """A sort of the samples of all ranks: one rank has hardly anything to sort."""
    random = np.random.default_rng(seed)
    p = np.array([1.0, 2, 4, 8, 16, 32, 64])
    counts = (60 * p * np.log2(p) + 370 * p) * (1 + 0.003 * random.normal(size=p.size))
    counts[0] *= alone
    (model,) = fit_models(p[:, None], np.round(counts)[None, :, None], BLOCKS, ("p",))
    assert isinstance(model, Model)
    assert "without p=1, which follows another formula" in model.notes
    assert model.evaluate([[512.0]])[0] == pytest.approx(60 * 512 * 9 + 370 * 512, rel=0.1)


@pytest.mark.parametrize("unit", ["blocks", "instructions"])
def test_a_sort_of_samples_of_all_processes(unit: str) -> None:
    """Counts of a real program, which sorts 32 samples of each process: those of one process are sorted before."""
    p = np.array([1.0, 2, 4, 8, 16, 32, 64])
    counts, at_512 = {
        "blocks": ([168.0, 863, 1882, 4478, 9873, 21092, 47060], 502983.0),
        "instructions": ([655.0, 3369, 7076, 16408, 35888, 75062, 165744], 1744792.0),
    }[unit]
    (model,) = fit_models(p[:, None], np.array(counts)[None, :, None], Metric(unit, "1", "effort"), ("p",))
    assert isinstance(model, Model)
    assert model.leading == {"p": (1, 1)}
    assert model.evaluate([[512.0]])[0] == pytest.approx(at_512, rel=0.1)


def test_values_that_are_the_same_for_all_ranks_are_no_more_evidence() -> None:
    """Iterations that only depend on n are as uncertain at four numbers of ranks as at one."""
    n, iterations = np.array([64.0, 96, 128, 192, 256]), np.array([19.0, 24, 28, 34, 41])
    points = np.array([(p, own) for p in (1.0, 2, 4, 8) for own in n])
    (alone,) = fit_models(n[:, None], iterations[None, :, None], BLOCKS, ["n"])
    (several,) = fit_models(points, np.tile(iterations, 4)[None, :, None], BLOCKS, ["p", "n"])
    assert isinstance(alone, Model) and isinstance(several, Model)
    assert several.at(p=8, n=1024) == pytest.approx(alone.at(n=1024))
    assert several.standard_error((8, 1024)) > 0.75 * alone.standard_error((1024,))
