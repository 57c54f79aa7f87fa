# SPDX-License-Identifier: Apache-2.0
"""The roofline of kernels: flops and bytes of call paths, and the ceilings of a machine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region
from quipu.modeling.kernels.model import model_program
from quipu.modeling.kernels.roofline import Roofline, ceilings_of, roofline
from quipu.modeling.machine import Bandwidth, Cache, Machine
from quipu.report.roofline_views import drawn, roofline_json

SIZES = np.array([100.0, 200.0, 400.0, 800.0])
MACHINE = Machine(
    "here",
    "a processor",
    2,
    3e9,
    3e9,
    (Cache(1, 32768, 64, 8, 1, 1e-9),),
    1e-7,
    bandwidth=(Bandwidth(1, 2e10), Bandwidth(2, 3e10)),
    flops=4e10,
)
TREE = CallTree(
    (Region("main", "main"), Region("triad", "triad"), Region("multiply", "multiply")),
    np.array([0, 1, 2]),
    np.array([-1, 0, 0]),
)


def measured(*, from_memory: bool) -> Experiment:
    """Return a program: 2·n² flops in 32·n² bytes, and 2·n³ flops of which nothing comes from memory."""
    ones, nothing = np.ones(4), np.zeros(4)
    values = {
        "visits": np.stack([ones, ones, ones]),
        "blocks": np.stack([ones, SIZES**2, SIZES**3]),
        "flops": np.stack([nothing, 2 * SIZES**2, 2 * SIZES**3]),
        "bytes_loaded": np.stack([nothing, 16 * SIZES**2, 16 * SIZES**3]),
        "bytes_stored": np.stack([nothing, 16 * SIZES**2, 8 * SIZES**3]),
        "time": np.stack([1e-9 * ones, 4e-9 * SIZES**2, 1e-10 * SIZES**3]),
    }
    if from_memory:
        values["memory_accesses"] = np.stack([nothing, SIZES**2 / 2, nothing])
    metrics = {name: Metric(name, "1", "effort") for name in values} | {"time": Metric("time", "s", "cost")}
    columns = {name: column[:, :, None] for name, column in values.items()}
    return Experiment("two kernels", ("n",), SIZES[:, None], TREE, metrics, columns)


def found(experiment: Experiment, machine: Machine = MACHINE, n: float = 1600.0) -> Roofline | None:
    return roofline(model_program(experiment, machine), machine, {"n": n})


def test_ceilings_are_those_of_one_core_of_several_that_read() -> None:
    ceilings = ceilings_of(MACHINE)
    assert ceilings is not None
    assert (ceilings.flops, list(ceilings.bandwidths.values())) == (4e10, [2e10, 1.5e10])
    assert ceilings.at(0.5) == 7.5e9
    assert ceilings.at(100.0) == 4e10
    assert ceilings_of(replace(MACHINE, bandwidth=())) is None


def test_a_kernel_is_below_the_roof_of_the_memory() -> None:
    roof = found(measured(from_memory=True))
    assert roof is not None
    (triad,) = roof.at
    assert (triad.name, roof.from_memory) == ("triad", True)
    assert triad.intensity == pytest.approx(2 / 32)
    assert triad.rate == pytest.approx(0.5e9, rel=0.01)
    assert roof.part(triad) == pytest.approx(0.5e9 / (1.5e10 / 16), rel=0.01)
    assert roof.measured[0].flops == pytest.approx(2 * 800.0**2)  # nearest to the target
    assert [spot.name for spot in roof.unmoved] == ["multiply"]


def test_without_caches_all_loads_and_stores_move() -> None:
    roof = found(measured(from_memory=False))
    assert roof is not None
    assert [spot.name for spot in roof.at] == ["multiply", "triad"]
    assert roof.at[0].intensity == pytest.approx(2 / 24)
    assert roof.part(roof.at[0]) is None  # caches serve them: the roof of the memory says nothing
    assert roof.unmoved == ()


def test_without_bandwidth_or_flops_there_is_no_roofline() -> None:
    assert found(measured(from_memory=True), replace(MACHINE, bandwidth=())) is None


def test_the_picture_holds_all_kernels_and_roofs() -> None:
    roof = found(measured(from_memory=False))
    assert roof is not None
    picture = drawn(roof)
    _, _, left, right, top, bottom = picture.size
    assert [kernel.name for kernel in picture.kernels] == ["multiply", "triad"]
    for x, y in (place for kernel in picture.kernels for place in (kernel.at, kernel.measured)):
        assert left <= x <= right
        assert top <= y <= bottom
    assert [text.split(":")[0] for _, _, _, text, _ in picture.roofs] == [*roof.ceilings.bandwidths, "processor"]
    assert not picture.no_flops
    assert drawn(replace(roof, ceilings=replace(roof.ceilings, flops=0.0))).no_flops
    assert roofline_json(roof)["at"][0]["part_of_allowed"] is None
