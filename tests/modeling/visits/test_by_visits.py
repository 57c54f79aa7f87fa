# SPDX-License-Identifier: Apache-2.0
"""Counts that depend on data through visits: iterations to a tolerance, and the work of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import fit_metrics
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Region
from quipu.modeling.metrics import METRICS
from quipu.modeling.pmnf import Model, Options
from quipu.modeling.pmnf.options import NoModel
from quipu.modeling.process_grid import ProcessGrid, assumed

NAMES = ("main", "solve", "apply", "dot", "at")
SOLVE, APPLY, DOT, AT = 1, 2, 3, 4


def solver(points: FloatArray, iterations: FloatArray, cells: FloatArray) -> Experiment:
    """Return a solver of `iterations` (C, R) on `cells` (C,) by configuration."""
    tree = CallTree(tuple(Region(name, name) for name in NAMES), np.arange(5), np.array([-1, 0, 1, 1, 2]))
    of = cells[:, None]
    once = np.ones_like(iterations)
    visits = np.stack([once, once, iterations, 2 * iterations + 1, iterations * of])
    side = np.sqrt(of)
    blocks = np.stack(
        [7 * once, iterations * (5 + of) + 3 * of + 13, iterations * (of + 2 * side + 1), visits[DOT], visits[AT]]
    )
    parameters = ("n", "p")[: points.shape[1]]
    metrics = {name: METRICS[name] for name in ("visits", "blocks")}
    return Experiment("solver", parameters, points, tree, metrics, {"visits": visits, "blocks": blocks})


def models(experiment: Experiment) -> dict[str, list[Model | NoModel]]:
    return fit_metrics(experiment, experiment.metrics, Options())


@pytest.mark.parametrize(("power", "repetitions"), [(1, 5), (1, 1), (2, 5)])
def test_all_counts_of_a_loop_agree_on_its_iterations(power: int, repetitions: int) -> None:
    n = np.array([16.0, 24, 32, 40, 48, 64])
    random = np.random.default_rng(5)
    iterations = np.round(2.7 * n[:, None] ** power * (1 + 0.004 * random.standard_normal((6, repetitions))))
    found = models(solver(n[:, None], iterations, n**2))
    steps = found["visits"][APPLY]
    assert isinstance(steps, Model)
    assert steps.lead("n") == (power, 0)
    far = 512.0
    expected = {
        ("visits", DOT): 2 * steps.at(n=far) + 1,
        ("visits", AT): steps.at(n=far) * far**2,
        ("blocks", SOLVE): steps.at(n=far) * (5 + far**2) + 3 * far**2 + 13,
        ("blocks", APPLY): steps.at(n=far) * (far + 1) ** 2,
    }
    for (metric, path), value in expected.items():
        model = found[metric][path]
        assert isinstance(model, Model)
        assert model.at(n=far) == pytest.approx(value, rel=1e-6), (metric, NAMES[path], str(model))
        mine, its = model.predict((far,)), steps.predict((far,))
        assert mine.lower < mine.value < mine.upper
        assert mine.upper / mine.value == pytest.approx(its.upper / its.value, rel=0.02)
        assert model.quality is not None and model.quality.rms_relative < 0.02


def test_what_a_visit_does_may_depend_on_two_parameters() -> None:
    points = np.array([(n, p) for n in (32.0, 48, 64, 96, 128) for p in (2.0, 4, 8, 16)])
    random = np.random.default_rng(7)
    iterations = np.round(2.7 * points[:, :1] * (1 + 0.004 * random.standard_normal((20, 3))))
    found = models(solver(points, iterations, points[:, 0] ** 2 / points[:, 1]))
    steps, at = found["visits"][APPLY], found["visits"][AT]
    assert isinstance(steps, Model) and isinstance(at, Model)
    assert at.at(n=512, p=64) == pytest.approx(steps.at(n=512, p=64) * 512**2 / 64, rel=1e-9)


def iterating(sizes: tuple[float, ...]) -> tuple[FloatArray, FloatArray, Experiment, dict[str, FloatArray]]:
    """Return n (C,), iterations (C, 1) by chance, and the solver at these sizes on 1 to 16 ranks, with its values."""
    points = np.array([(n, p) for n in sizes for p in (1.0, 2, 4, 8, 16)])
    n, p = points.T
    iterations = np.round(5.3 * np.sqrt(n) * p**0.07 + np.sin(7 * n + p))[:, None]
    experiment = solver(points, iterations, n**2)
    return n, iterations, experiment, {name: own.copy() for name, own in experiment.values.items()}


def test_what_several_call_sites_do_is_a_sum_of_many_terms_of_one_parameter() -> None:
    """Products of n³ cells are expanded three times in a loop and twice before it, each with one block more or not."""
    n, iterations, experiment, values = iterating((4.0, 6, 8, 10))
    values["visits"][DOT] = 3 * iterations + 2
    values["blocks"][DOT] = iterations * (3 * n[:, None] ** 3 + 4) + 2 * n[:, None] ** 3 + 4
    found = models(replace(experiment, values=values))
    steps, model = found["visits"][APPLY], found["blocks"][DOT]
    assert isinstance(steps, Model)
    assert isinstance(model, Model)
    for size, ranks in ((40.0, 16.0), (10.0, 64.0)):
        own = steps.at(n=size, p=ranks)
        assert model.at(n=size, p=ranks) == pytest.approx(own * (3 * size**3 + 4) + 2 * size**3 + 4, rel=1e-6)


def test_numbers_of_ranks_do_not_tell_how_many_terms_a_size_has() -> None:
    """Through what each visit does at four sizes, which depends on data, goes a sum of four terms of them."""
    n, iterations, experiment, values = iterating((64.0, 128, 256, 512))
    each = dict(zip((64.0, 128, 256, 512), (5104.0, 12070, 27411, 61205), strict=True))  # near 14·n·log2(n)
    values["blocks"][DOT] = iterations * np.array([each[size] for size in n.tolist()])[:, None]
    values["visits"][DOT] = iterations
    model = models(replace(experiment, values=values))["blocks"][DOT]
    assert isinstance(model, Model)
    assert model.lead("n")[0] < 2


def test_runs_that_differ_in_visits_tell_sums_of_many_terms() -> None:
    """Fields with borders that are copied once and passed through in each iteration: six terms."""
    n = np.array([16.0, 24, 32, 40, 48, 64])
    random = np.random.default_rng(6)
    iterations = np.round(2.7 * n[:, None] * (1 + 0.01 * random.standard_normal((6, 5))))
    iterations[2] = iterations[2, 0]  # a size at which nothing differs
    experiment = solver(n[:, None], iterations, n**2)
    border = (n[:, None] + 2) ** 2
    experiment.values["blocks"][SOLVE] = iterations * (16 * border + 3) + 24 * border + 100
    found = models(experiment)
    steps, blocks = found["visits"][APPLY], found["blocks"][SOLVE]
    assert isinstance(steps, Model) and isinstance(blocks, Model)
    far = steps.at(n=512) * (16 * 514**2 + 3) + 24 * 514**2 + 100
    assert blocks.at(n=512) == pytest.approx(far, rel=1e-9)


def test_counts_that_are_exact_stay_exact() -> None:
    n = np.array([16.0, 24, 32, 40, 48, 64])
    found = models(solver(n[:, None], np.repeat(3 * n[:, None] + 5, 2, axis=1), n**2))
    blocks = found["blocks"][SOLVE]
    assert isinstance(blocks, Model)
    assert str(blocks) == "3·n³ + 8·n² + 15·n + 38"
    assert blocks.covariance == ()


def test_without_visits_counts_are_modelled_alone() -> None:
    n = np.array([16.0, 24, 32, 40, 48])
    experiment = solver(n[:, None], np.round(2.7 * n[:, None]), n**2)
    (own,) = fit_metrics(experiment, ["blocks"]).values()
    assert all(isinstance(model, Model) for model in own)


def test_exact_counts_of_a_grid_are_not_those_of_other_visits() -> None:
    """Neighbours of 3D grids, and a call path whose visits have the same values at two of three numbers of ranks."""
    points = np.array([(p, n) for p in (1.0, 8, 27) for n in (6.0, 8, 10, 12)])
    p = points[:, 0]
    side = np.round(np.cbrt(p))
    neighbours = 60 * (side - 1) / side
    tree = CallTree(tuple(Region(name, name) for name in NAMES[:4]), np.arange(4), np.array([-1, 0, 1, 1]))
    ones = np.ones_like(p)
    around = 10 * ((3 - 2 / side) ** 3 - 1)
    visits = np.stack([ones, 10 * ones, np.round(around), np.round(neighbours)])
    metrics = {"visits": METRICS["visits"]}
    experiment = Experiment("neighbours", ("p", "n"), points, tree, metrics, {"visits": visits[:, :, None]})
    found = fit_metrics(experiment, metrics, Options(grids=assumed("p")))
    faces = found["visits"][3]
    assert isinstance(faces, Model)
    assert faces.at(p=64, n=14) == pytest.approx(45)


def test_what_is_executed_nowhere_has_a_model() -> None:
    """A call path has only zeros; another one has visits that depend on data."""
    n = np.array([16.0, 24, 32, 40, 48, 64])
    iterations = np.random.default_rng(5).integers(20, 90, (6, 3)).astype(np.float64)
    experiment = solver(n[:, None], iterations, n**2)
    for values in experiment.values.values():
        values[AT] = 0.0
    assert all(isinstance(model, Model) for model in models(experiment)["visits"])


def test_what_is_executed_at_one_number_of_processes_is_not_known_at_others() -> None:
    """`at` is called three times per iteration at p = 16 only; this does not determine its visits at p = 64."""
    points = np.array([(n, p) for p in (1.0, 4.0, 16.0) for n in (16.0, 24.0, 32.0, 48.0)])
    iterations = np.random.default_rng(3).integers(20, 90, (12, 1)).astype(np.float64)
    experiment = solver(points, iterations, points[:, 0] ** 2)
    for values in experiment.values.values():
        values[AT] = np.where(points[:, 1:] == 16, 3 * iterations, 0.0)
    (model,) = models(experiment)["visits"][AT : AT + 1]
    assert isinstance(model, Model)
    assert any("one value of p" in note for note in model.notes)
    prediction = model.predict((48.0, 64.0))
    assert prediction.upper > 2 * prediction.lower


def exchange(neighbours: dict[int, float]) -> tuple[Model, Model]:
    """Return the models of iterations to a tolerance, and of what is sent in each by the number of processes."""
    points = np.array([(p, n) for p in (1.0, 2, 4, 8, 16) for n in (12.0, 16, 20, 24, 32)])
    iterations = np.tile([39.0, 52, 66, 80, 106], 5)
    sends = iterations * np.array([neighbours[int(p)] for p in points[:, 0]])
    tree = CallTree(tuple(Region(name, name) for name in NAMES[:3]), np.arange(3), np.array([-1, 0, 1]))
    visits = np.stack([np.ones(25), iterations, sends])[:, :, None]
    metrics = {"visits": METRICS["visits"]}
    experiment = Experiment("exchange", ("p", "n"), points, tree, metrics, {"visits": visits})
    _, steps, send = fit_metrics(experiment, metrics, Options(grids=assumed("p")))["visits"]
    assert isinstance(steps, Model) and isinstance(send, Model)
    return steps, send


def test_what_a_visit_does_on_a_grid_of_processes_may_have_other_functions() -> None:
    """All 26 neighbours in each iteration: of five numbers of processes, several functions are exact."""
    steps, send = exchange({1: 0.0, 2: 1.0, 4: 3.0, 8: 7.0, 16: 9.0})
    mine, its = send.predict((64.0, 48.0)), steps.predict((64.0, 48.0))
    assert mine.value == pytest.approx(((3 - 2 / 4) ** 3 - 1) * its.value)
    assert mine.upper / mine.value > its.upper / its.value  # not only how many iterations there are is open
    assert sum(other.weight for other in send.alternatives) < 1.0


def test_as_many_numbers_as_counts_for_each_visit_are_no_function_of_a_grid() -> None:
    """What blocks that are dealt out to a grid count for each visit: a sum of three numbers for five counts."""
    _, send = exchange({1: 4 / 3, 2: 5 / 3, 4: 11 / 6, 8: 2.5, 16: 17 / 6})
    assert not any(factor.axis for term in send.terms for factor in term.factors)


def test_shares_of_ranks_beside_what_is_done_once() -> None:
    # Blocks of the solver: of n² cells of all ranks, once and in each iteration, and what each iteration does besides.
    points = np.array([(n, p) for n in (16.0, 24, 32, 40, 48) for p in (1.0, 2, 4, 8)])
    n, p = points.T
    random = np.random.default_rng(2)
    iterations = np.round((0.9 * n + 6 * np.log2(p) + 5) * (1 + 0.05 * random.standard_normal(len(n))))[:, None]
    experiment = solver(points, iterations, n**2 / p)
    found = models(experiment)
    steps, solve, apply = found["visits"][APPLY], found["blocks"][SOLVE], found["blocks"][DOT]
    assert isinstance(steps, Model) and isinstance(solve, Model) and isinstance(apply, Model)
    share = 256.0**2 / 32
    expected = steps.at(n=256, p=32) * (5 + share) + 3 * share + 13
    assert solve.at(n=256, p=32) == pytest.approx(expected, rel=1e-6)


def test_counts_of_each_visit_are_as_open_as_visits() -> None:
    """Bytes of visits have more digits than these, and no more to say."""
    points = np.array([(n, p) for p in (1.0, 2, 4, 8) for n in (32.0, 64, 128, 256)])
    n, p = points.T
    visits = (20 * np.log2(n / p) + 20 * (p > 1) + 20)[:, None]
    one = np.ones_like(visits)
    tree = CallTree((Region("main", "main"), Region("halo", "halo")), np.arange(2), np.array([-1, 0]))
    values = {"visits": np.stack([one, visits]), "bytes_loaded": np.stack([8 * one, 24 * visits])}
    metrics = {name: METRICS[name] for name in values}
    grids = (ProcessGrid("p", "balanced", 1, "of messages"),)
    found = fit_metrics(Experiment("cycle", ("n", "p"), points, tree, metrics, values), metrics, Options(grids=grids))
    often, loaded = found["visits"][1], found["bytes_loaded"][1]
    assert isinstance(often, Model) and isinstance(loaded, Model)
    for far in ((1024.0, 32.0), (4096.0, 64.0)):
        mine, its = loaded.predict(far), often.predict(far)
        assert (mine.lower, mine.value, mine.upper) == pytest.approx(
            tuple(24 * x for x in (its.lower, its.value, its.upper))
        )


def test_what_all_ranks_count_alike_is_no_sum_by_luck() -> None:
    """Nodes of a tree at four sizes with five runs each: no sum of three functions fits."""
    points = np.array([(n, p) for p in (1.0, 2, 4, 8, 16) for n in (64.0, 128, 256, 512)])
    searched, built = (np.tile(own, 5)[:, None] for own in ([830.0, 1938, 4213, 9427], [305.0, 617, 1169, 2429]))
    one = np.ones_like(searched)
    tree = CallTree(tuple(Region(name, name) for name in NAMES[:3]), np.arange(3), np.array([-1, 0, 1]))
    values = {"visits": np.stack([one, searched, built])}
    metrics = {"visits": METRICS["visits"]}
    experiment = Experiment("tree", ("n", "p"), points, tree, metrics, values)
    model = models(experiment)["visits"][2]
    assert isinstance(model, Model)
    assert model.at(n=2048, p=64) == pytest.approx(9700, rel=0.1)
