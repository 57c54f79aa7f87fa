# SPDX-License-Identifier: Apache-2.0
"""An experiment with known models, and names that try to break out of a page."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from quipu.modeling.experiment import CallTree, Experiment, Metric, Region, RegionKind
from quipu.modeling.pmnf.model import Alternative, Factor, Model, Quality, Term
from quipu.report.views import PlacedModel

HOSTILE = "</script><img src=x onerror=alert(1)>"
TEMPLATE = "operator<< <T&>"
METRICS = {
    "time": Metric("time", "s", "cost", "sum", "wall-clock time"),
    "visits": Metric("visits", "1", "effort", "sum", "times the region was entered"),
    "blocks": Metric("blocks", "1", "effort", "sum", "executed basic blocks"),
    "bytes_sent": Metric("bytes_sent", "B", "effort", "sum", "payload given to MPI"),
    "comm_size": Metric("comm_size", "1", "effort", "max", "processes in the communicator"),
}
REGIONS = (
    Region("main", "main", file="heat.c", line=120),
    Region("_ZN4heat5sweepEv", "heat::sweep(Grid<double>&, Grid<double> const&, double)", file="sweep.cpp", line=40),
    Region("exchange", "exchange_halo", file="halo.c", line=12),
    Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
    Region("MPI_Sendrecv", "MPI_Sendrecv", RegionKind.MPI),
    Region("evil", HOSTILE, file="</title><b>.c", line=1),
    Region("_Zls", TEMPLATE, file="io.cpp", line=7),
)
REGION = (0, 1, 2, 4, 1, 3, 5, 6)
PARENT = (-1, 0, 0, 2, 0, 0, 0, 6)


def quality(smape: float) -> Quality:
    """Return a quality with this SMAPE."""
    return Quality(smape, smape / 100, 0.999, 0.998, smape / 90, 20)


def model(constant: float, *terms: tuple[float, dict[str, tuple[str, int]]], smape: float = 0.0) -> Model:
    """Return a model of p and n from (coefficient, {parameter: (exponent, log)}) terms."""
    built = tuple(
        Term(c, tuple(Factor(name, Fraction(i), j) for name, (i, j) in factors.items())) for c, factors in terms
    )
    return Model(("p", "n"), constant, built, quality(smape), ((1, 16), (32, 256)))


def planted(extra_paths: int = 0) -> tuple[Experiment, list[PlacedModel]]:
    """Return an experiment over p and n (20 configurations, 3 repetitions) and models of its call paths."""
    rng = np.random.default_rng(7)
    points = np.array([[p, n] for p in (1, 2, 4, 8, 16) for n in (32, 64, 128, 256)], dtype=float)
    region = np.array([*REGION, *rng.integers(0, len(REGIONS), extra_paths)])
    parent = np.array([*PARENT, *[int(rng.integers(0, len(PARENT) + at)) for at in range(extra_paths)]])
    tree = CallTree(REGIONS, region, parent)
    cube = {"n": ("3", 0), "p": ("-1", 0)}
    formulas: dict[tuple[int, str], Model] = {
        (0, "time"): model(0.01, smape=1.2),
        (1, "time"): model(1e-3, (4.2e-8, cube), smape=3.4),
        (1, "blocks"): model(12, (3.0, cube)),
        (2, "time"): model(1e-4, (2e-8, {"n": ("2", 0)}), smape=5.1),
        (3, "bytes_sent"): model(0, (16, {"n": ("2", 0)})),
        (3, "time"): model(2e-5, (3e-9, {"n": ("2", 0)}), (2e-5, {"p": ("1/2", 1)}), smape=8.8),
        (4, "time"): model(0, (1.1e-8, cube)),
        (5, "time"): model(1e-5, (4e-4, {"p": ("0", 1)}), smape=12.5),
        (5, "comm_size"): model(0, (1, {"p": ("1", 0)})),
        (6, "time"): model(0.002),
        (7, "time"): model(0, (1e-6, {"n": ("1", 1)})),
    }
    formulas[5, "time"] = replace(
        formulas[5, "time"],
        covariance=((1e-10, 0.0), (0.0, 1e-10)),
        alternatives=(Alternative(0.3, 0.0, (Term(1.3e-4, (Factor("p", Fraction(1)),)),)),),
        notes=("repetitions disagree by 14 %",),
    )
    values = {name: np.zeros((len(tree), len(points), 3)) for name in METRICS}
    values["visits"][:] = 1
    for (path, metric), form in formulas.items():
        exact = form.evaluate(points)[:, None]
        noise = rng.normal(1, 0.04, (len(points), 3)) if metric == "time" else 1.0
        values[metric][path] = exact * noise
    values["time"][:, 3, 2] = np.nan
    models = [
        PlacedModel(path, metric, form, "20 configurations", "Table I: allreduce" if path == 5 else "")
        for (path, metric), form in formulas.items()
    ]
    models.append(PlacedModel(0, "bytes_sent", None, "measured", "", "never executed"))
    experiment = Experiment("heat", ("p", "n"), points, tree, METRICS, values, "mean", ("one run is partial",))
    return experiment, models
