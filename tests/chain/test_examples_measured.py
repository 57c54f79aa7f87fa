# SPDX-License-Identifier: Apache-2.0
"""Counts of the examples equal their documentation: exact bytes, repeatable blocks, leading exponents."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
from class_counts import assert_classes_equal_metrics
from example_programs import COMPILED, Program, campaign_arguments, make
from quipu.agent.archive.read import read_archive
from quipu.agent.archive.run import RunArchive
from quipu.agent.merge.experiment import find_runs
from quipu.modeling.experiment import Experiment
from quipu.modeling.pmnf.model import Model, Term
from quipu.modeling.pmnf.model.term import sort_key

from .conftest import Campaign, Campaigns, quipu

BYTES = ("bytes_sent", "bytes_received", "messages_sent", "messages_received")
EFFORT = ("visits", "blocks", *BYTES, "comm_size")


def counts(archive: RunArchive, metrics: tuple[str, ...]) -> dict[tuple[tuple[str, ...], int], tuple[float, ...]]:
    """Return metric values by call path and rank, threads added up."""
    result: dict[tuple[tuple[str, ...], int], np.ndarray] = defaultdict(lambda: np.zeros(len(metrics)))
    assert archive.values is not None
    table = np.column_stack([archive.values.metrics[name] for name in metrics])
    for path, rank, row in zip(archive.values.callpath, archive.values.rank, table, strict=True):
        result[archive.tree.key(int(path)), int(rank)] += row
    return {key: tuple(float(x) for x in row) for key, row in result.items()}


@pytest.mark.parametrize("p", [1, 2, 4, 8])
def test_effort_is_identical_in_repeated_runs(campaign: Campaign, p: int) -> None:
    n = min(campaign.experiment().points[:, 1].astype(int))
    (first,) = (run for run in find_runs(campaign.runs) if run.metadata.parameters == {"p": p, "n": n})
    again = campaign.folder / "again"
    point = ("--param", f"p={p}", "--param", f"n={n}")
    quipu("run", *point, "-o", again, "--", *first.metadata.command, cwd=campaign.folder)
    (second,) = (run for run in find_runs(again) if run.metadata.parameters == {"p": p, "n": n})
    assert counts(read_archive(first.path), EFFORT) == counts(read_archive(second.path), EFFORT)


def test_bytes_and_messages_are_those_of_the_formulas(campaign: Campaign) -> None:
    for run in find_runs(campaign.runs):
        archive = read_archive(run.path)
        p = int(run.metadata.parameters["p"])
        nothing = np.zeros((p, len(BYTES)))
        counted: dict[tuple[str, str], np.ndarray] = defaultdict(nothing.copy)
        measured = counts(archive, BYTES)
        names = {archive.tree.key(i): i for i in range(len(archive.tree))}
        for (key, rank), values in measured.items():
            path = names[key]
            if not archive.tree.region_of(path).name.startswith("MPI_"):
                assert not any(values)
                continue
            parent = int(archive.tree.parent[path])
            caller = archive.tree.name(parent) if parent >= 0 else ""
            counted[caller, archive.tree.name(path)][rank] += values
        stated = 0
        for operation in campaign.complexity.operations:
            matching = [
                values
                for (caller, name), values in counted.items()
                if name == operation.name and fnmatchcase(caller, operation.caller)
            ]
            total = sum(matching, nothing)
            expected = campaign.complexity.expected(operation, run.metadata.parameters)
            for column, name in enumerate(BYTES):
                if name in expected:
                    assert total[:, column].tolist() == expected[name], (run.path, operation, name)
                else:
                    totals = campaign.complexity.expected_total(operation, run.metadata.parameters)
                    assert total[:, column].sum() == totals[name], (run.path, operation, name)
            stated += total.sum()
        assert stated == sum(values.sum() for values in counted.values())  # nothing is undocumented


@pytest.mark.parametrize("name", COMPILED)
def test_classes_of_blocks_add_up_to_the_metrics(campaigns: Campaigns, name: str) -> None:
    for run in find_runs(campaigns[name].runs):
        assert_classes_equal_metrics(read_archive(run.path))


def largest_term(model: Model, experiment: Experiment) -> Term | None:
    """Return the term of the highest total order; of several, the largest one at the largest point."""
    largest = experiment.points.max(axis=0)[None]

    def size(term: Term) -> float:
        return float(Model(model.parameters, 0.0, (term,)).evaluate(largest)[0])

    return max(model.terms, key=lambda term: (sort_key(term)[:2], size(term)), default=None)


@pytest.mark.parametrize("name", COMPILED)
def test_leading_exponents_are_those_documented(campaigns: Campaigns, name: str) -> None:
    campaign = campaigns[name]
    experiment, analysis = campaign.experiment(), campaign.analysis()
    for region in campaign.complexity.regions:
        if not region.dominant:
            continue
        models = analysis.models("blocks", inclusive=region.inclusive)
        found = 0
        for path, entry in enumerate(models):
            if not fnmatchcase(experiment.tree.name(path), region.name):
                continue
            found += 1
            assert isinstance(entry.model, Model), (region.name, entry)
            for parameter in experiment.parameters:
                lead = largest_term(entry.model, experiment)
                found_exponents = lead.exponents(parameter) if lead else (0, 0)
                assert found_exponents == tuple(region.blocks.get(parameter, (0, 0))), (region, str(entry.model))
        assert found, region.name


def test_halo_bytes_grow_with_the_face(campaigns: Campaigns) -> None:
    experiment = campaigns["heat"].experiment()
    models = campaigns["heat"].analysis().models("bytes_sent")
    (path,) = [i for i in range(len(experiment.tree)) if experiment.tree.label(i).endswith("halo_exchange->MPI_Isend")]
    model = models[path].model
    assert isinstance(model, Model)
    assert model.leading == {"p": (0, 0), "n": (2, 0)}


def test_bytes_of_a_chain_of_ranks_grow_with_the_row(campaigns: Campaigns) -> None:
    experiment = campaigns["jacobi_py"].experiment()
    models = campaigns["jacobi_py"].analysis().models("bytes_sent")
    (path,) = [i for i in range(len(experiment.tree)) if experiment.tree.name(i) == "MPI_Sendrecv"]
    assert str(models[path].model) == "800·n·(p-1)/p"


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("p", [1, 4])
def test_results_equal_those_of_the_plain_program(
    campaigns: Campaigns, programs: dict[str, Program], name: str, p: int, tmp_path: Path
) -> None:
    arguments = campaign_arguments(name, 64)
    plain = programs[name].result(p, *arguments)
    raw = tmp_path / "raw"
    raw.mkdir()
    measured = make(name, campaigns[name].folder, *_wrappers(name))
    assert measured.result(p, *arguments) == plain
    assert measured.result(p, *arguments, environment={"QUIPU_DIR": str(raw)}) == plain
    assert len(list(raw.glob("profile-*.quipu"))) == p


def _wrappers(name: str) -> tuple[str, ...]:
    kind, wrapper = ("MPICC", "quipu-mpicc") if name == "heat" else ("MPICXX", "quipu-mpic++")
    return (f"{kind}={wrapper}",)
