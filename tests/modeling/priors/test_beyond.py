# SPDX-License-Identifier: Apache-2.0
"""Time beyond effort: planted waiting and slowdown are part of the models, and noise brings neither about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.analysis import Analysis, analyze
from quipu.modeling.document import from_document, to_document
from quipu.modeling.evaluation import evaluate
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Model
from quipu.modeling.priors.imbalance import imbalances
from quipu.modeling.priors.pipelines import waiting_growths
from quipu.modeling.priors.waiting import waiting_priors
from quipu.modeling.process_grid import ProcessGrid

from ..waiting_program import RECEIVE, WORK, N, P, experiment, normal_noise


def planted(
    work: FloatArray, receive: FloatArray, wait: FloatArray | None = None, noise: FloatArray | float = 1.0
) -> Analysis:
    return analyze(experiment(work, receive, wait, noise))


def model_at(analysis: Analysis, path: int, p: float, n: float) -> float:
    model = analysis.models("time")[path].model
    assert isinstance(model, Model)
    return float(model.evaluate(np.array([[p, n]]))[0])


@pytest.mark.parametrize("seed", range(3))
def test_waiting_that_was_measured_has_a_model_of_its_own(seed: int) -> None:
    noise = normal_noise(seed)
    analysis = planted(WORK, RECEIVE + 0.2 * WORK * P ** (1 / 3), 0.2 * WORK * P ** (1 / 3), noise)
    entry = analysis.models("time")[2]
    assert entry.basis == "table I: MPI_Recv + waiting"
    truth = 1e-5 + 8e-9 * 1000 + 0.2 * 3e-9 * 1000**2 * 10
    assert model_at(analysis, 2, 1000, 1000) == pytest.approx(truth, rel=0.15)
    assert entry.lower is not None
    assert str(entry.model) != str(entry.lower)


@pytest.mark.parametrize("seed", range(3))
def test_transfers_that_slow_down_are_predicted_beside_waiting(seed: int) -> None:
    wait = 0.2 * WORK * P ** (1 / 3)
    analysis = planted(WORK, RECEIVE * (0.5 + 0.05 * P) + wait, wait, normal_noise(seed))
    entry = analysis.models("time")[2]
    assert entry.basis == "table I: MPI_Recv × growth in p + waiting"
    truth = (1e-5 + 8e-9 * 800) * (0.5 + 0.05 * 1000) + 0.2 * 3e-9 * 800**2 * 10
    assert model_at(analysis, 2, 1000, 800) == pytest.approx(truth, rel=0.1)


def test_no_growth_is_steeper_than_that_of_a_ring() -> None:
    """With few numbers of ranks, the rest of a slight growth looks like waiting."""
    analysis = planted(WORK, RECEIVE * (0.5 + 0.002 * P * np.log2(P)))
    entry = analysis.models("time")[2]
    assert entry.basis == "table I: MPI_Recv × growth in p" and isinstance(entry.model, Model)
    assert entry.model.lead("p") <= (1, 0)


@pytest.mark.parametrize("seed", range(3))
def test_ranks_wait_along_the_process_grid_for_the_computation_of_each_step(seed: int) -> None:
    """A wave through a cube of processes has p^(1/3) - 1 steps; nobody waits for setup."""
    wait = 0.5 * WORK * (P ** (1 / 3) - 1)
    analysis = analyze(experiment(WORK, RECEIVE + wait, wait, normal_noise(seed), setup=1e-3))
    assert analysis.models("time")[2].basis == "table I: MPI_Recv + waiting"
    truth = 1e-5 + 8e-9 * 1000 + 0.5 * 3e-9 * 1000**2 * 9
    assert model_at(analysis, 2, 1000, 1000) == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_ranks_wait_for_computation_as_long_as_it_takes(seed: int) -> None:
    """If computation slows down with the ranks, waiting for it grows, too."""
    work = WORK * (0.5 + 0.2 * np.log2(P))
    wait = 0.5 * work * (P ** (1 / 3) - 1)
    analysis = analyze(experiment(work, RECEIVE + wait, wait, normal_noise(seed)))
    truth = 1e-5 + 8e-9 * 1000 + 0.5 * 3e-9 * 1000**2 * (0.5 + 0.2 * np.log2(1000)) * 9
    assert analysis.models("time")[1].basis == "effort × growth in p"
    assert model_at(analysis, 2, 1000, 1000) == pytest.approx(truth, rel=0.1)  # by effort alone: 0.28 to 0.30


@pytest.mark.parametrize("seed", range(3))
def test_each_stage_of_a_pipeline_passes_a_message_on(seed: int) -> None:
    """Per stage: latency, transfer of the message, and computation, of equal size in the measured range."""
    stage = 2e-4 + 1e-6 * N + 0.5 * WORK
    wait = stage * (P ** (1 / 3) - 1)
    analysis = analyze(experiment(WORK, RECEIVE + wait, wait, normal_noise(seed)))
    assert analysis.models("time")[2].basis == "table I: MPI_Recv + waiting"
    truth = 1e-5 + 8e-9 * 1000 + (2e-4 + 1e-6 * 1000 + 0.5 * 3e-9 * 1000**2) * 9
    assert model_at(analysis, 2, 1000, 1000) == pytest.approx(truth, rel=0.1)  # without messages: 0.25 to 0.34


def test_the_steps_through_the_process_grid_of_a_program_are_a_growth_of_waiting() -> None:
    grid = ProcessGrid("p", "balanced", 3, "MPI_Cart_create")
    growths = waiting_growths(["p"], [grid])
    (steps,) = (growth.model for growth in growths if str(growth) == "pz + py + px - 3")
    assert (steps,) in [prior.columns for prior in waiting_priors(None, growths)]
    found = steps.evaluate(np.array([[1.0], [2], [4], [8], [16], [64]]))
    assert found.tolist() == [0, 1, 2, 3, 5, 9]
    assert not any("px" in str(growth) for growth in waiting_growths(["nodes"], [grid]))
    texts = list(map(str, growths))
    assert not any("1/3" in text or "1/2" in text for text in texts)  # what the length of a pipeline may be like
    assert any("1/3" in str(growth) for growth in waiting_growths(["p"]))


@pytest.mark.parametrize(("dimensions", "alike"), [(1, True), (2, False), (3, False)])
def test_what_waits_for_all_ranks_of_a_chain_waits_for_any_of_them(dimensions: int, alike: bool) -> None:
    """Any rank may be late by chance; a wave through a grid of several dimensions ends later the farther it goes."""
    grid = ProcessGrid("p", "balanced", dimensions, "MPI_Cart_create")
    collective = {str(growth): growth.penalty for growth in waiting_growths(["p"], [grid], messages=False)}
    messages = {str(growth): growth.penalty for growth in waiting_growths(["p"], [grid])}
    without = {str(growth): growth.penalty for growth in waiting_growths(["p"])}
    growth = "log2(p)^2" if "log2(p)^2" in without else "log2(p)²"
    assert (collective[growth] == without[growth]) == alike
    assert messages[growth] > without[growth]


def test_the_latest_of_all_ranks_is_not_later_in_proportion_to_their_number() -> None:
    """Of p times by chance the largest grows more slowly than p; a chain of messages has p - 1 steps."""
    chain = ProcessGrid("p", "balanced", 1, "MPI_Cart_create")
    collective = {str(growth): growth.penalty for growth in waiting_growths(["p"], [chain], messages=False)}
    step = waiting_growths(["p"], [chain])[0]
    assert str(step) == "p - 1"
    assert collective["p - 1"] > step.penalty == collective["p^(2/3) - 1"] == collective["p^(1/2) - 1"]


@pytest.mark.parametrize("seed", range(3))
def test_ranks_wait_for_the_one_that_has_the_most_to_do(seed: int) -> None:
    """Its counted excess of blocks determines how waiting grows, and explains its irregularity."""
    uneven = 1 + 0.3 * np.random.default_rng(seed + 10).uniform(-1, 1, len(P))
    excess = 0.02 * P * 3 * N**2 * uneven
    wait = 1e-9 * excess
    runs = experiment(WORK, RECEIVE + wait, wait, normal_noise(seed), setup=0.0)
    nothing = np.zeros_like(excess)
    counted = replace(runs, excess={"blocks": np.stack([nothing, excess, nothing])[:, :, None]})
    analysis = analyze(counted)
    (imbalanced,) = imbalances(counted, dict(enumerate(analysis.models("time"))))
    np.testing.assert_allclose(imbalanced.counted, wait, rtol=0.05)
    truth = 0.02 * 1000 * 3e-9 * 1000**2
    assert model_at(analysis, 2, 1000, 1000) == pytest.approx(truth, rel=0.3)
    shares = [model_at(analysis, 2, p, 500) / (0.02 * p * 3e-9 * 500**2 + 1.4e-5) for p in (27, 216)]
    assert shares == pytest.approx([1, 1], rel=0.2)


def uneven_program(excess: FloatArray, noise: FloatArray | float = 1.0) -> Experiment:
    """Return the program whose busiest rank counts so many blocks (C,) beyond the mean, which the others wait for."""
    wait = 1e-9 * excess
    runs = experiment(WORK, RECEIVE + wait, wait, noise, setup=0.0)
    nothing = np.zeros_like(excess)
    return replace(runs, excess={"blocks": np.stack([nothing, excess, nothing])[:, :, None]})


def test_doubt_about_how_imbalance_goes_on_is_doubt_about_waiting() -> None:
    """Times follow the counts at the measured points, with any function beyond."""
    errors, held, widths = [], [], []
    for seed in range(8):
        excess = 0.02 * P * 3 * N**2 * (1 + 0.3 * np.random.default_rng(seed + 20).uniform(-1, 1, len(P)))
        model = analyze(uneven_program(excess, normal_noise(seed))).models("time")[2].model
        assert isinstance(model, Model)
        assert model.alternatives
        found = model.predict((1000.0, 1000.0))
        truth = 0.02 * 1000 * 3e-9 * 1000**2 + 1.8e-5
        errors.append(abs(found.value / truth - 1))
        held.append(found.lower <= truth <= found.upper)
        widths.append(found.upper / found.lower)
    assert np.mean(held) >= 0.75
    assert np.median(widths) > 1.2  # without that doubt: 1.05
    assert np.median(errors) < 0.2


def test_imbalance_that_is_an_exact_function_is_no_doubt() -> None:
    runs = uneven_program(3 * N * P)
    (found,) = imbalances(runs, dict(enumerate(analyze(runs).models("time"))))
    assert str(found.model) == "3e-09·n·p"
    assert not found.model.alternatives
    assert not found.model.covariance


def test_call_paths_that_are_uneven_by_the_same_chance_have_one_doubt() -> None:
    """A copy of a call path doubles imbalance and its uncertainty, because both depend on the same ranks."""
    excess = 0.02 * P * 3 * N**2 * (1 + 0.3 * np.random.default_rng(1).uniform(-1, 1, len(P)))
    single = uneven_program(excess)
    tree = CallTree((*single.tree.regions, Region("again", "again")), np.array([0, 1, 2, 3]), np.array([-1, 0, 1, 0]))
    values = {name: np.concatenate([own, own[1:2]]) for name, own in single.values.items()}
    copied = np.concatenate([single.excess["blocks"], single.excess["blocks"][1:2]])
    double = replace(single, tree=tree, values=values, excess={"blocks": copied})
    found = [imbalances(runs, dict(enumerate(analyze(runs).models("time"))))[0] for runs in (single, double)]
    alone, both = (own.model.predict((1000.0, 1000.0)) for own in found)
    assert both.value == pytest.approx(2 * alone.value, rel=1e-6)
    assert both.upper / both.lower == pytest.approx(alone.upper / alone.lower, rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_ranks_may_have_waited_before_for_what_one_call_path_computes_longer(seed: int) -> None:
    """The imbalance of `again` does not grow with the ranks, and nobody waits for it here."""
    chance = 1 + 0.2 * np.random.default_rng(seed).uniform(-1, 1, len(P))
    waited, before = 0.02 * P * 3 * N**2 * chance, 0.5 * 3 * N**2 * chance[::-1]
    single = uneven_program(waited, normal_noise(seed))
    tree = CallTree((*single.tree.regions, Region("again", "again")), np.array([0, 1, 2, 3]), np.array([-1, 0, 1, 0]))
    values = {name: np.concatenate([own, own[1:2]]) for name, own in single.values.items()}
    excess = np.concatenate([single.excess["blocks"], before[None, :, None]])
    analysis = analyze(replace(single, tree=tree, values=values, excess={"blocks": excess}))
    truth = 0.02 * 1000 * 3e-9 * 1000**2
    assert model_at(analysis, 2, 1000, 1000) == pytest.approx(truth, rel=0.3)


def test_effort_that_is_alike_on_all_ranks_has_no_imbalance() -> None:
    runs = experiment(WORK, RECEIVE)
    models = dict(enumerate(analyze(runs).models("time")))
    assert not imbalances(runs, models)
    assert not imbalances(replace(runs, excess={"blocks": np.zeros_like(runs.values["blocks"])}), models)
    unknown = np.full_like(runs.values["blocks"], np.nan)
    unknown[:, 1:] = 5.0
    assert not imbalances(replace(runs, excess={"blocks": unknown}), models)


def test_a_collective_operation_around_a_ring_grows_with_the_number_of_ranks() -> None:
    """Table I has log2(p) latencies, in a tree."""
    ranks = np.array([4.0, 8, 16, 32, 64, 4, 8, 16, 32, 64])
    size = np.repeat([100.0, 200.0], 5)
    tree = CallTree(
        (Region("main", "main"), Region("MPI_Barrier", "MPI_Barrier", RegionKind.MPI)),
        np.array([0, 1]),
        np.array([-1, 0]),
    )
    ones, nothing = np.ones_like(ranks), np.zeros_like(ranks)
    noise = 1 + 0.02 * np.random.default_rng(4).normal(size=len(ranks))
    values = {
        "visits": np.stack([ones, 10 * ones]),
        "comm_size": np.stack([nothing, ranks]),
        "time": np.stack([1e-6 * ones, (5e-6 * np.log2(ranks) + 6e-7 * ranks) * noise]),
    }
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    whole = {name: own[:, :, None] for name, own in values.items()}
    analysis = analyze(Experiment("ring", ("p", "n"), np.stack([ranks, size], axis=1), tree, metrics, whole))
    entry = analysis.models("time")[1]
    assert entry.basis == "table I: MPI_Barrier × growth in p"
    assert model_at(analysis, 1, 512, 100) == pytest.approx(5e-6 * 9 + 6e-7 * 512, rel=0.1)
    assert entry.lower is not None
    assert entry.lower.lead("p") == (0, 1)


def test_polls_that_grow_with_the_depth_of_a_tree_are_no_steps_around_a_ring() -> None:
    """Panel requests of a rank of a linear solver, and their time, on a grid of √p × √p ranks."""
    ranks, size = np.array([(p, n) for p in (2.0, 4, 8, 16) for n in (64.0, 96, 128, 192, 256)]).T
    tree = CallTree(
        (Region("main", "main"), Region("MPI_Iprobe", "MPI_Iprobe", RegionKind.MPI)),
        np.array([0, 1]),
        np.array([-1, 0]),
    )
    polls = [19.5, 28.5, 37.5, 57.0, 81.0, 19.5, 29.5, 39.5, 57.75, 78.25]
    polls += [22.25, 34.25, 42.25, 66.125, 85.625, 20.75, 34.75, 45.25, 70.0, 87.625]
    microseconds = [105.0, 150.0, 195.0, 300.0, 451.5, 184.5, 284.5, 384.5, 545.75, 752.5]
    microseconds += [301.9, 467.5, 556.7, 864.1, 1163.0, 423.9, 673.6, 957.4, 1316.1, 1769.2]
    values = {
        "visits": np.stack([np.ones_like(ranks), polls]),
        "time": 1e-6 * np.stack([np.ones_like(ranks), microseconds]),
    }
    metrics = {"visits": Metric("visits", "1", "effort"), "time": Metric("time", "s", "cost")}
    whole = {name: own[:, :, None] for name, own in values.items()}
    analysis = analyze(Experiment("polls", ("p", "n"), np.stack([ranks, size], axis=1), tree, metrics, whole))
    entry = analysis.models("time")[1]
    assert entry.basis == "table I: MPI_Iprobe × growth in p"
    assert model_at(analysis, 1, 64, 256) == pytest.approx(3.39e-3, rel=0.35)
    assert model_at(analysis, 1, 64, 1024) == pytest.approx(12.6e-3, rel=0.35)


def test_computation_that_slows_down_is_predicted_and_its_effort_kept() -> None:
    noise = normal_noise(1)
    analysis = planted(WORK * (0.2 + 0.12 * np.log2(N)), RECEIVE, noise=noise)
    entry = analysis.models("time")[1]
    assert entry.basis == "effort × growth in n"
    truth = 3e-9 * 800**2 * (0.2 + 0.12 * np.log2(800))
    assert model_at(analysis, 1, 64, 800) == pytest.approx(truth, rel=0.05)
    assert entry.lower is not None
    assert entry.lower.lead("n") == (2, 0)
    without = analysis.from_effort.models("time")[1]
    assert (without.model, without.lower) == (entry.lower, None)


@pytest.mark.parametrize("seed", range(3))
def test_computation_may_take_longer_with_each_rank(seed: int) -> None:
    analysis = planted(WORK * (1 + 0.004 * P), RECEIVE, noise=normal_noise(seed))
    assert analysis.models("time")[1].basis == "effort × growth in p"
    assert model_at(analysis, 1, 1000, 500) == pytest.approx(5 * 3e-9 * 500**2, rel=0.1)  # bounded: less than half


@pytest.mark.parametrize("seed", range(3))
def test_what_memory_makes_longer_is_bounded(seed: int) -> None:
    full = np.minimum(P, 125) / 125  # from there on no cache holds anything
    analysis = planted(WORK * (1 + full), RECEIVE, noise=normal_noise(seed))
    assert model_at(analysis, 1, 1000, 500) == pytest.approx(2 * 3e-9 * 500**2, rel=0.35)


@pytest.mark.parametrize("seed", range(3))
def test_data_that_grow_beyond_a_cache_end_to_take_longer(seed: int) -> None:
    """The part of them that it holds falls as 1/p: the logarithm would go on to 2.8 times the effort."""
    analysis = planted(WORK * (2 - 8 / P), RECEIVE, noise=normal_noise(seed))
    assert analysis.models("time")[1].basis == "effort × growth in p"
    assert model_at(analysis, 1, 4096, 500) == pytest.approx(2 * 3e-9 * 500**2, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_slight_growth_with_the_ranks_is_modeled_if_it_predicts_better(seed: int) -> None:
    analysis = planted(WORK * (1 + 0.03 * np.log2(P / 8)), RECEIVE, noise=normal_noise(seed))
    truth = 3e-9 * 500**2 * (1 + 0.03 * np.log2(1000 / 8))
    assert model_at(analysis, 1, 1000, 500) == pytest.approx(truth, rel=0.03)  # by effort alone: 0.1


@pytest.mark.parametrize("seed", range(8))
def test_noise_is_neither_waiting_nor_slowdown(seed: int) -> None:
    """Half of the measurements take up to 75 % longer, each measured once."""
    random = np.random.default_rng(seed)
    noise = 1 + 0.75 * random.uniform(size=(3, len(P))) * (random.uniform(size=(3, len(P))) < 0.5)
    analysis = planted(WORK, RECEIVE, np.zeros_like(P), noise)
    assert [entry.lower for entry in analysis.models("time")] == [None] * 3


def test_models_that_are_stored_keep_what_is_beyond_effort() -> None:
    analysis = planted(WORK * np.sqrt(P / 8), RECEIVE)
    stored = from_document(to_document(analysis))
    assert stored.models("time")[1].basis == "effort × growth in p"
    point = {"p": 512.0, "n": 500.0}
    assert evaluate(stored, point).total.value == pytest.approx(evaluate(analysis, point).total.value)
    assert evaluate(stored.from_effort, point).total.value < evaluate(stored, point).total.value


@pytest.mark.parametrize("repetitions", [3, 5])
def test_repetitions_count_one_by_one(repetitions: int) -> None:
    """Half of the measurements take up to 75 % longer: means of repetitions have hardly a clean one among them."""
    random = np.random.default_rng(7)
    errors = []
    for _ in range(10):
        clean = experiment(WORK, RECEIVE)
        times = np.repeat(clean.values["time"], repetitions, axis=2)
        times = times * (1 + 0.75 * random.uniform(size=times.shape) * (random.uniform(size=times.shape) < 0.5))
        effort = {name: values for name, values in clean.values.items() if name != "time"}
        model = analyze(replace(clean, values={**effort, "time": times})).models("time")[1].model
        assert isinstance(model, Model)
        errors.append(abs(float(model.evaluate(np.array([[512.0, 1000.0]]))[0]) / (3e-9 * 1000**2) - 1))
    assert np.mean(errors) < 0.005
