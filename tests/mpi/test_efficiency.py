# SPDX-License-Identifier: Apache-2.0
"""Efficiencies of real programs on simulated ranks, with known seconds per unit of effort."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.cli.efficiencies import efficiency_view
from quipu.agent.installation import native_file
from quipu.agent.launch.launchers import launch_command
from quipu.modeling.rates import PathRates, Rates, to_document
from quipu.report.efficiency_views import EfficiencyColumn

SOURCE = """
#include <mpi.h>
#include <stdlib.h>
static double __attribute__((noinline)) work(long n) {
    double sum = 1.0;
    for (long i = 0; i < n; i++) sum = sum * 0.5 + i;
    return sum;
}
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int p, rank;
    long n = atol(argv[1]), serial = atol(argv[2]), bytes = atol(argv[3]);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double sum = work(2 * n * (rank + 1) / (p * (p + 1)));
    char *buffer = calloc(bytes, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) sum += work(serial);
    MPI_Bcast(buffer, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum < 0.0;
}
"""
IDEAL = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="ideal" routing="Full">
<cluster id="nodes" prefix="node-" suffix="" radical="0-7" speed="10Gf" bw="1000TBps" lat="0us"/>
</zone></platform>
"""
RATE = 1e-8  # seconds per instruction


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "app.c").write_text(SOURCE)
    subprocess.run([native_file("quipu-smpicc"), "-O1", folder / "app.c", "-o", folder / "app"], check=True)
    return folder / "app"


def simulated(program: Path, runs: Path, p: int, *words: int, platform: Path | None = None) -> None:
    file = runs.parent / "some.rates"
    file.write_text(json.dumps(to_document(Rates(("instructions",), PathRates((), (RATE,), 1.0, 0.0, 1, "all")))))
    options = replace(LaunchOptions(node_agent=False, say=lambda text: None), rates=file)
    command = launch_command("smpi", [str(program), *map(str, words)], p, platform)
    run(command, {"p": p}, None, runs, options)


def value(column: EfficiencyColumn, name: str) -> float:
    return column.factors.of(name)[0]


def test_an_imbalance_is_found_within_a_percent(program: Path, tmp_path: Path) -> None:
    for p in (2, 4, 8):
        simulated(program, tmp_path / "runs", p, 8_000_000, 0, 8)
    for column in efficiency_view(tmp_path / "runs").columns:
        p = column.ranks
        assert value(column, "load_balance") == pytest.approx((p + 1) / (2 * p), rel=0.01)
        assert value(column, "work_balance") == pytest.approx((p + 1) / (2 * p), rel=0.01)
        assert value(column, "communication") == pytest.approx(1.0, rel=0.01)
        assert value(column, "transfer") == pytest.approx(1.0, rel=0.01)
        assert value(column, "instruction") == pytest.approx(1.0, rel=0.01)
        assert value(column, "rate") == pytest.approx(1.0, rel=0.01)


def test_a_serial_part_and_the_network_are_told_apart(program: Path, tmp_path: Path) -> None:
    """Rank 0 works while the others wait; then 100 MB cross the network."""
    n, serial, bytes_sent, p = 2_500_000, 500_000, 100_000_000, 4
    platform = tmp_path / "ideal.xml"
    platform.write_text(IDEAL)
    simulated(program, tmp_path / "runs", p, n, serial, bytes_sent)
    simulated(program, tmp_path / "ideal", p, n, serial, 8, platform=platform)
    column = efficiency_view(tmp_path / "runs").columns[0]
    # Useful: n/10 + serial, n/5, 3n/10, 4n/10. Without the network: 4n/10 + serial.
    most = 0.4 * n
    assert value(column, "load_balance") == pytest.approx((n + serial) / 4 / most, rel=0.01)
    assert value(column, "serialization") == pytest.approx(most / (most + serial), rel=0.01)
    assert value(column, "transfer") < 0.95
    simulation = efficiency_view(tmp_path / "runs", ideal_network=tmp_path / "ideal").columns[0]
    for name in ("serialization", "transfer"):
        assert value(simulation, name) == pytest.approx(value(column, name), rel=0.01)
