# SPDX-License-Identifier: Apache-2.0
"""Select the PMPI library of the MPI of launcher and program, and report mismatches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from measured import MPICH, compile_program
from quipu.agent.campaign.repetition import LaunchOptions, RunFailed, run
from quipu.agent.launch import mpi_choice
from quipu.agent.launch.launchers import LaunchPlan, LaunchRequest, plan_launch
from quipu.modeling.errors import MeasurementError
from quipu.mpi_wrap.installation import MPICH as MPICH_FAMILY
from quipu.mpi_wrap.installation import OPEN_MPI, MpiInstallation, describe_mpicc
from quipu.mpi_wrap.program import mpi_of_program

QUIET = LaunchOptions(say=lambda text: None)


def plan(family: str, *programs: Path) -> LaunchPlan:
    return LaunchPlan((), {}, None, programs, family, "", is_mpi=True)


@pytest.fixture(scope="module")
def of_mpich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that was built for MPICH."""
    return compile_program("session", tmp_path_factory.mktemp("mpich"), mpi=MPICH)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[MpiInstallation]:
    """The MPIs for which a library was requested."""
    found: list[MpiInstallation] = []

    def library(installation: MpiInstallation) -> Path:
        found.append(installation)
        return Path("lib.so")

    monkeypatch.setattr(mpi_choice, "mpi_library", library)
    return found


@pytest.mark.parametrize(
    ("launcher", "present", "expected"),
    [
        ("mpirun", ["mpicc"], "mpicc"),
        ("mpirun.mpich", ["mpicc", "mpicc.mpich"], "mpicc.mpich"),
        ("mpiexec.hydra", ["mpicc"], "mpicc"),
        ("mpirun", [], None),
        ("srun", ["mpicc"], None),
    ],
)
def test_the_library_is_that_of_the_launcher(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chosen: list[MpiInstallation],
    launcher: str,
    present: list[str],
    expected: str | None,
) -> None:
    def describe(mpicc: str | None = None) -> MpiInstallation:
        return MpiInstallation(Path(mpicc or "default"), OPEN_MPI, "", (), ())

    monkeypatch.setattr(mpi_choice, "describe_mpicc", describe)
    for name in (launcher, *present):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    mpi_choice.library_for(launcher, plan("none"), {"PATH": str(tmp_path)})
    mpi_choice.library_for(launcher, plan("none"), {"PATH": str(tmp_path), "QUIPU_MPICC": "mine"})
    assert [mpi.mpicc for mpi in chosen] == [tmp_path / expected if expected else Path("default"), Path("mine")]


def test_a_batch_system_gets_the_library_of_the_program(
    tmp_path: Path, chosen: list[MpiInstallation], of_mpich: Path
) -> None:
    srun = tmp_path / "srun"
    srun.write_text("")
    srun.chmod(0o755)
    mpi_choice.library_for("srun", plan("slurm", of_mpich), {"PATH": str(tmp_path)})
    assert [mpi.family for mpi in chosen] == [MPICH_FAMILY]


def test_what_does_not_fit_is_told_before_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_mpich: Path
) -> None:
    assert mpi_of_program(of_mpich) == MPICH_FAMILY
    assert mpi_of_program(Path(__file__)) is None
    with pytest.raises(MeasurementError, match=r"built for MPICH, and mpirun.openmpi .* Start it with mpirun\.mpich"):
        run(["mpirun.openmpi", "-n", "2", str(of_mpich)], {}, None, tmp_path / "runs", QUIET)
    monkeypatch.setenv("QUIPU_MPICC", "mpicc.openmpi")
    with pytest.raises(MeasurementError, match=r"name the mpicc of MPICH in QUIPU_MPICC"):
        run(["mpirun.mpich", "-n", "2", str(of_mpich)], {}, None, tmp_path / "runs", QUIET)
    assert not (tmp_path / "runs").exists()


def test_modules_of_the_other_mpi_end_the_process_with_a_message(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """An interpreter names no MPI; its module, built for MPICH, would pass handles to Open MPI."""
    module = compile_program("callbacks", tmp_path, ["-shared", "-fPIC"], mpi=MPICH)
    code = f"import ctypes; ctypes.CDLL({str(module)!r}).main(0, None)"
    with pytest.raises(RunFailed, match="exit code 1;"):
        run(["mpirun.openmpi", "-n", "1", sys.executable, "-c", code], {}, None, tmp_path / "runs", QUIET)
    assert f"quipu: error: {module} was built for MPICH" in capfd.readouterr().err


def test_a_program_of_the_other_mpi_is_measured(tmp_path: Path, of_mpich: Path) -> None:
    archive = run(["mpirun.mpich", "-n", "2", str(of_mpich), str(tmp_path)], {}, None, tmp_path / "runs", QUIET)
    assert archive.metadata.launcher["ranks"] == 2
    assert len(archive.ranks) == 2


@pytest.mark.parametrize("mpi", ["", MPICH])
def test_a_program_without_a_launcher_is_its_only_rank(tmp_path: Path, mpi: str) -> None:
    """MPI_Init and MPI_Finalize have times of their own; a program without MPI has no such operations."""
    (tmp_path / "one.c").write_text(
        "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); return MPI_Finalize(); }\n"
    )
    (tmp_path / "none.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([f"mpicc{mpi}", tmp_path / "one.c", "-o", tmp_path / "one"], check=True)
    subprocess.run(["cc", tmp_path / "none.c", "-o", tmp_path / "none"], check=True)
    archive = run([str(tmp_path / "one")], {}, None, tmp_path / "runs", QUIET)
    assert {"MPI_Init", "MPI_Finalize"} <= {region.name for region in archive.tree.regions}
    assert archive.metadata.launcher["ranks"] == 1
    assert archive.metadata.problems == ()
    request = LaunchRequest((str(tmp_path / "none"),), Path("shim"), {}, {}, 2)
    assert not plan_launch(request).is_mpi


def test_the_interface_of_mpis_made_from_mpich_is_its_own() -> None:
    made = MpiInstallation(Path("mpicc"), "Intel MPI", "2021", (), ())
    assert (made.interface, describe_mpicc("mpicc.openmpi").interface) == (MPICH_FAMILY, OPEN_MPI)
