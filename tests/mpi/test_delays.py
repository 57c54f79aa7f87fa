# SPDX-License-Identifier: Apache-2.0
"""Ranks find out during the run who waits for which of their call paths."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from measured import PROGRAMS, Run, launch
from quipu.agent.archive.delay_table import read_delays
from quipu.agent.archive.read import read_archive
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.installation import native_file
from quipu.agent.launch.launchers import launch_command
from quipu.agent.merge.efficiency_times import run_times
from quipu.modeling.rates import PathRates, Rates, to_document
from quipu.modeling.root_causes import root_causes

Told = dict[tuple[str, str, int], float]


def told(run: Run) -> Told:
    """Return seconds by operation, cause ("" for none) and rank."""
    found: Told = defaultdict(float)
    for rank, profile in run.profiles.items():
        for record in profile.delays:
            operation, cause = (
                "->".join(profile.regions[number].display for number in path)
                for path in (record.operation, record.cause)
            )
            found[operation, cause, rank] += record.ticks * profile.seconds_per_tick
    return found


def measured(program: Path, folder: Path, library: Path, mode: str) -> Told:
    variables = {"LD_PRELOAD": str(library), "QUIPU_DIR": str(folder), "QUIPU_MPI_WAIT": mode}
    return told(launch([str(program)], 2, folder, variables))


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("native") / "delays"
    subprocess.run([native_file("quipu-mpicc"), "-O1", PROGRAMS / "delays.c", "-o", built], check=True)
    return built


@pytest.mark.parametrize("mode", ["sample", "all"])
def test_the_late_rank_is_told_what_others_waited_for(native: Path, tmp_path: Path, library: Path, mode: str) -> None:
    """The function takes both ranks equally long in total; only measurements during the run show who is late."""
    found = measured(native, tmp_path, library, mode)
    for phase, operation, late in (("first", "MPI_Barrier", 1), ("second", "MPI_Bcast", 0)):
        own = {key[1:]: seconds for key, seconds in found.items() if key[0] == f"main->{phase}->{operation}" and key[1]}
        cause, rank = max(own, key=lambda key: own[key])
        assert cause.startswith(f"main->{phase}->work"), (mode, found)
        assert rank == late, (mode, found)
    assert all(operation.split("->")[-1] != "MPI_Wait" for operation, _, _ in found)


def test_without_probes_nobody_is_told(native: Path, tmp_path: Path, library: Path) -> None:
    assert not measured(native, tmp_path, library, "local")


def simulate(name: str, units: int, folder: Path) -> Path:
    """Return a run in which so many units of work take a millisecond each, to a few instructions."""
    program = folder / "program"
    subprocess.run([native_file("quipu-smpicc"), "-O1", PROGRAMS / name, "-o", program], check=True)
    counted = run(
        launch_command("smpi", [str(program)], 4, None),
        {"p": 4},
        None,
        folder / "counts",
        LaunchOptions(node_agent=False),
    )
    instructions = float(counted.statistics["instructions"].sum.sum())
    rates = folder / "app.rates"
    program_rates = PathRates((), (units * 1e-3 / instructions,), 1.0, 0.0, 1, "all")
    rates.write_text(json.dumps(to_document(Rates(("instructions",), program_rates))), encoding="utf-8")
    options = LaunchOptions(node_agent=False, rates=rates)
    return run(launch_command("smpi", [str(program)], 4, None), {"p": 4}, None, folder / "runs", options).path


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    units = 30 + 3 * 10 + 50 + 3 * 10 + 40 + 3 * 20 + 10 + 3 * 30 + 25 + 3 * 5
    return simulate("delays_simulated.c", units, tmp_path_factory.mktemp("simulated"))


EXPECTED = {
    ("MPI_Barrier", 1): 3 * 20.0,
    ("MPI_Bcast", 0): 3 * 40.0,
    ("MPI_Gather", 2): 20.0,
    ("MPI_Barrier", 3): 20.0,  # of the half
}


def test_simulated_delays_are_exact(simulated: Path) -> None:
    archive = read_archive(simulated)
    table = read_delays(simulated, len(archive.tree))
    assert table is not None
    found: dict[tuple[str, int], float] = defaultdict(float)
    for operation, cause, rank, seconds in zip(table.operation, table.cause, table.rank, table.seconds, strict=True):
        assert cause < 0 or archive.tree.name(int(cause)) == "work"
        if cause >= 0:
            found[archive.tree.name(int(operation)), int(rank)] += 1e3 * float(seconds)
    for key, milliseconds in EXPECTED.items():
        assert found.pop(key) == pytest.approx(milliseconds, rel=0.01), key
    # After the gather the root and the leaf are 20 ms later than the rest; the leaf makes up for it, the root does not.
    assert sum(found.values()) <= 3 * 20.0 + 1.0, found


def test_charges_and_what_is_unexplained_are_the_waiting(simulated: Path) -> None:
    archive = read_archive(simulated)
    times = run_times(archive, archive.tree)
    causes = root_causes(times)
    assert causes is not None
    assert times.delays is not None
    told_at = sum(cause.waiting for cause in causes.causes if times.collective[cause.path])
    told = float(times.delays.seconds[times.collective[times.delays.operation]].sum())
    assert told / times.ranks == pytest.approx(told_at, rel=1e-3)
    assert float(causes.delay_caused.sum()) + causes.unexplained == pytest.approx(causes.waiting)


def test_who_waits_for_a_rank_that_waited_waits_for_what_that_rank_waited_for(tmp_path: Path) -> None:
    archive = read_archive(simulate("chain_simulated.c", 40 + 20, tmp_path))
    table = read_delays(archive.path, len(archive.tree))
    assert table is not None
    found: dict[tuple[str, str, int], float] = defaultdict(float)
    for operation, cause, rank, seconds in zip(table.operation, table.cause, table.rank, table.seconds, strict=True):
        if seconds > 0.5e-3:
            names = [archive.tree.name(step) for step in archive.tree.ancestry(int(cause))] if cause >= 0 else []
            name = next((name for name in names if name in ("first", "second")), "")
            found[archive.tree.name(int(operation)), name, int(rank)] += 1e3 * float(seconds)
    assert found == {
        ("MPI_Recv", "first", 0): pytest.approx(40.0, rel=0.01),
        ("MPI_Wait", "second", 1): pytest.approx(20.0, rel=0.01),
        ("MPI_Wait", "first", 0): pytest.approx(40.0, rel=0.01),
        ("MPI_Barrier", "second", 1): pytest.approx(20.0, rel=0.01),
        ("MPI_Barrier", "first", 0): pytest.approx(40.0, rel=0.01),
    }
