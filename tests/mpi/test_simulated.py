# SPDX-License-Identifier: Apache-2.0
"""Ranks that SimGrid SMPI simulates in one process: the same archive as from processes, in simulated time."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from quipu.agent.archive.run import RunArchive
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, run
from quipu.agent.installation import native_file
from quipu.agent.launch.launchers import launch_command

PROGRAMS = Path(__file__).parent / "programs"
QUIET = LaunchOptions(node_agent=False, say=lambda text: None)
EFFORT = ("visits", "blocks", "bytes_sent", "bytes_received", "messages_sent", "messages_received", "comm_size")
SLOW = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="far" prefix="far-" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1s"/>
</platform>
"""
Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build a test program by a compiler wrapper and give its path."""
    folder = tmp_path_factory.mktemp("programs")

    def build_one(name: str, compiler: str, *more: str) -> Path:
        program = folder / f"{name}-{compiler}"
        if not program.exists():
            path = native_file(compiler) if compiler.startswith("quipu") else Path(compiler)
            fortran = compiler.endswith("90")
            options = [*more, *(["-O0"] if fortran else ["-O1", "-Wall", "-Werror"])]
            ending = "f90" if fortran else "cpp" if compiler.endswith("cxx") else "c"
            source = PROGRAMS / f"{name}.{ending}"
            subprocess.run([path, *options, source, "-o", program], cwd=folder, check=True)
        return program

    return build_one


def simulated(program: Path, ranks: int, folder: Path, *arguments: str, platform: Path | None = None) -> RunArchive:
    command = launch_command("smpi", [str(program), *arguments], ranks, platform)
    return run(command, {"p": ranks}, None, folder, QUIET)


def table(archive: RunArchive, metric: str) -> dict[tuple[tuple[str, ...], int], float]:
    """Nonzero values by call path and rank, summed over threads."""
    tree, paths = archive.tree, list[tuple[str, ...]]()
    for region, parent in zip(tree.region.tolist(), tree.parent.tolist(), strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), tree.regions[region].name))
    values = archive.values
    assert values is not None
    rows = zip(values.callpath.tolist(), values.rank.tolist(), values.metrics[metric].tolist(), strict=True)
    found: dict[tuple[tuple[str, ...], int], float] = {}
    for path, rank, value in rows:
        if value:
            found[paths[path], rank] = found.get((paths[path], rank), 0) + value
    return found


@pytest.mark.parametrize("ranks", [16, 64])
def test_simulated_ranks_count_what_processes_count(build: Build, library: Path, tmp_path: Path, ranks: int) -> None:
    processes = build("simulated", "quipu-mpicc")
    options = replace(QUIET, mpi_preload=library)
    real = run(["mpirun", "-n", str(ranks), str(processes)], {"p": ranks}, None, tmp_path / "real", options)
    archive = simulated(build("simulated", "quipu-smpicc"), ranks, tmp_path / "simulated")
    assert archive.metadata.complete
    assert archive.metadata.ranks == ranks
    assert [record.rank for record in archive.ranks] == list(range(ranks))
    assert archive.metadata.launcher["family"] == "smpi"
    assert f'radical="0-{ranks - 1}"' in archive.metadata.launcher["platform"]
    for metric in EFFORT:
        assert table(archive, metric) == table(real, metric), metric
    assert any(path[-1] == "work" for path, _ in table(archive, "blocks"))


def test_programs_of_the_plain_compiler_are_counted(build: Build, tmp_path: Path) -> None:
    plain = simulated(build("simulated", "smpicc"), 8, tmp_path / "plain")
    built = simulated(build("simulated", "quipu-smpicc"), 8, tmp_path / "built")
    for metric in ("visits", "bytes_sent", "bytes_received"):
        of_mpi: dict[tuple[str, int], float] = {}
        for (path, rank), value in table(built, metric).items():
            if path[-1].startswith("MPI_"):
                of_mpi[path[-1], rank] = of_mpi.get((path[-1], rank), 0) + value
        assert {(path[-1], rank): value for (path, rank), value in table(plain, metric).items()} == of_mpi


def test_fortran_programs_are_simulated(build: Build, tmp_path: Path) -> None:
    archive = simulated(build("simulated", "quipu-smpif90"), 4, tmp_path)
    assert archive.metadata.complete
    visits, blocks = table(archive, "visits"), table(archive, "blocks")
    names = {region.name: region.display for region in archive.tree.regions}
    work = next(name for name, display in names.items() if display == "grid::work")
    program = next(path[0] for path, _ in visits if path[-1] == work)
    for rank in range(4):
        assert visits[(program, work), rank] == 1
        assert visits[(program, "MPI_Allreduce"), rank] == 1
        assert table(archive, "bytes_sent")[(program, "MPI_Send"), rank] == 4
    each = [blocks[(program, work), rank] - blocks[(program, work), rank - 1] for rank in (1, 2, 3)]
    assert each[0] == each[1] == each[2] > 0


def test_fortran_programs_have_their_arguments_and_the_environment(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OF_THE_PROGRAM", "value")
    program = build("simulated_arguments", "quipu-smpif90")
    simulated(program, 2, tmp_path, "input", "x" * 50, "-last")
    assert "3|input|value|-last5" in capfd.readouterr().out


@pytest.mark.parametrize("how", ["return", "stop", "exit"])
def test_ranks_of_fortran_programs_end_one_by_one(
    how: str, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = simulated(build("simulated_stop", "quipu-smpif90"), 3, tmp_path / "runs", how)
    assert archive.metadata.complete
    for rank in range(3):
        assert Path(f"fort.{10 + rank}").read_text().split() == ["rank", str(rank)]


def test_a_fortran_rank_that_fails_fails_the_simulation(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunFailed):
        simulated(build("simulated_stop", "quipu-smpif90"), 3, tmp_path / "runs", "error")


def test_time_is_that_of_the_simulation(build: Build, tmp_path: Path) -> None:
    platform = tmp_path / "far.xml"
    platform.write_text(SLOW)
    archive = simulated(build("pingpong", "quipu-smpicc"), 2, tmp_path / "runs", "3", platform=platform)
    time = {(path[-1], rank): value for (path, rank), value in table(archive, "time").items()}
    # A message crosses two links of one second (SMPI doubles it for small ones); rank 0 waits for both ways.
    assert 12 <= time["MPI_Recv", 0] < 30
    assert 6 <= time["MPI_Recv", 1] < 30


def test_waiting_is_exact_in_simulated_time(build: Build, tmp_path: Path) -> None:
    """Rank 2 of 3 is late; there are no probes, and the transfer time of long messages is not waiting time."""
    archive = simulated(build("simulated_waits", "quipu-smpicc"), 3, tmp_path)
    assert archive.metadata.complete
    late, found = 0.25, dict[tuple[str, int], float]()
    for (path, rank), value in table(archive, "wait_time").items():
        found[path[-1], rank] = found.get((path[-1], rank), 0.0) + value
    barriers = {key: found.pop(key) for key in list(found) if key[0] == "MPI_Barrier"}
    assert max(barriers.values()) > 0
    times = {("MPI_Waitany", 0): 2, **dict.fromkeys([("MPI_Allreduce", 1), ("MPI_Bcast", 1), ("MPI_Win_fence", 1)], 1)}
    names = ("Recv", "Send", "Waitall", "Sendrecv", "Allreduce", "Bcast", "Reduce", "Allgather", "Win_fence")
    times |= {(f"MPI_{name}", 0): 1 for name in names}
    assert {key for key, value in found.items() if value > 0.01 * late} == set(times)
    for key, number in times.items():
        assert found[key] == pytest.approx(number * late, rel=0.02), key
    time = table(archive, "time")
    assert all(value <= time[key] for key, value in table(archive, "wait_time").items())
    receive = sum(value for (path, rank), value in time.items() if path[-1] == "MPI_Recv" and rank == 0)
    assert receive > late + (1 << 26) / 12.5e9


def test_functions_that_mpi_calls_belong_to_their_rank(build: Build, tmp_path: Path) -> None:
    archive = simulated(build("pingpong", "quipu-smpicc"), 4, tmp_path)
    visits = table(archive, "visits")
    called = {rank: value for (path, rank), value in visits.items() if path == ("main", "MPI_Allreduce", "add")}
    assert sum(called.values()) >= 3
    for rank, value in called.items():
        assert visits[("main", "MPI_Allreduce", "add", "compute"), rank] == value
    assert {path[0] for path, _ in visits} == {"main"}


def test_a_rank_that_ends_early_makes_the_run_partial(build: Build, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="exit code 7") as failure:
        simulated(build("pingpong", "quipu-smpicc"), 3, tmp_path, "2", "exit")
    archive = failure.value.archive
    assert archive is not None
    assert archive.metadata.partial
    assert any("ranks 0-2 ended before MPI_Finalize" in text for text in archive.metadata.problems)
    assert table(archive, "bytes_sent")[("main", "MPI_Send"), 1] == 8


def test_a_rank_that_leaves_the_end_of_mpi_to_a_static_object_is_complete(build: Build, tmp_path: Path) -> None:
    archive = simulated(build("late_end", "quipu-smpicxx"), 3, tmp_path)
    assert not archive.metadata.partial
    assert archive.metadata.problems == (
        "the program returned from main without MPI_Finalize: MPI calls of destructors of static objects are not "
        "simulated",
    )
    assert table(archive, "visits")[("main", "MPI_Allreduce"), 2] == 3


@pytest.mark.parametrize("words", [["sh", "-c", "true"], ["env", "sh"], ["python3", "-c", ""]])
def test_a_shell_is_no_program_for_a_simulation(tmp_path: Path, words: list[str]) -> None:
    with pytest.raises(
        RunFailed, match=f"loads the program itself, and {words[0]} was not linked with SMPI"
    ) as failure:
        run(launch_command("smpi", words, 2, None), {"p": 2}, None, tmp_path, QUIET)
    assert "compiler wrappers" not in str(failure.value)


def test_signals_threads_and_openmp_work_as_without_the_simulation(
    build: Build, library: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the threads of the ranks are counted; other threads and signals do not end the run."""
    options = replace(QUIET, mpi_preload=library)
    command = ["mpirun", "--oversubscribe", "-n", "2", str(build("behind", "quipu-mpicc", "-fopenmp"))]
    real = run(command, {"p": 2}, None, tmp_path / "real", options)
    archive = simulated(build("behind", "quipu-smpicc", "-fopenmp"), 2, tmp_path / "simulated")
    plain = simulated(build("behind", "smpicc", "-fopenmp"), 2, tmp_path / "plain")
    assert capfd.readouterr().out.count("sum 110\n") == 3
    assert archive.metadata.complete
    assert plain.metadata.complete
    assert table(archive, "bytes_sent") == table(real, "bytes_sent") != {}
    for measured, threads in ((archive, 2), (real, 5)):
        visits = table(measured, "visits")
        assert [visits[("main", "omp parallel"), rank] for rank in range(2)] == [threads] * 2


def test_ranks_that_call_mpi_in_parallel_regions(build: Build, library: Path, tmp_path: Path) -> None:
    """Ranks of a simulation switch inside of a region: the OpenMP library must not keep teams for a tool."""
    options = replace(QUIET, mpi_preload=library)
    command = ["mpirun", "--oversubscribe", "-n", "4", str(build("teams", "quipu-mpicc", "-fopenmp"))]
    real = run(command, {"p": 4}, None, tmp_path / "real", options)
    archive = simulated(build("teams", "quipu-smpicc", "-fopenmp"), 4, tmp_path / "simulated")
    assert archive.metadata.complete
    for metric in EFFORT:
        assert table(archive, metric) == table(real, metric), metric
    visits = table(archive, "visits")
    assert [visits[("main", "omp parallel"), rank] for rank in range(4)] == [7, 9, 7, 9]
    assert any(path[-1] == "omp parallel level 2" for path, _ in visits)
