# SPDX-License-Identifier: Apache-2.0
"""Programs under the MPI library end as without it, and a run names missing parts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from measured import LAUNCH, MPICH, PROGRAMS, compile_program, preloaded
from patience import PATIENCE
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.run import RunArchive
from quipu.agent.installation import native_file
from quipu.agent.launch.raw_folder import read_raw_folder
from quipu.agent.merge.run import combine

Program = Callable[[str], Path]
RUN = RunMetadata(exit_code=0)
SOCKETS = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}


@pytest.fixture(scope="module")
def instrumented(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Build a test program with the compiler wrappers."""

    def build(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        options = ["-O1", "--quipu-all", str(PROGRAMS / f"{name}.c"), "-pthread", "-o", str(folder / name)]
        subprocess.run([native_file("quipu-mpicc"), *options], check=True)
        return folder / name

    return build


def mpirun(
    ranks: int, command: Sequence[str | Path], environment: dict[str, str], mpi: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [f"mpirun{mpi}", "-n", str(ranks), *map(str, command)],
        env={**os.environ, **LAUNCH, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def measured(script: str, folder: Path, library: Path) -> list[str]:
    """Command of each rank: a shell that replaces MEASURED by `exec env` with the variables of a measurement."""
    variables = f"LD_PRELOAD={preloaded(library)} QUIPU_MPI_REDUCE=1 QUIPU_DIR={folder}"
    return ["bash", "-c", script.replace("MEASURED", f"exec env {variables}")]


def merged(folder: Path) -> RunArchive:
    return combine(read_raw_folder(folder), RUN)


@pytest.mark.parametrize("kilobytes", [1, 20, 136, 270, 600])
def test_a_limit_on_file_sizes_is_not_felt(
    instrumented: Program, library: Path, tmp_path: Path, kilobytes: int
) -> None:
    """The profiles cannot begin, or not grow; the reduction cannot be written. Over sockets: the shared memory of Open
    MPI does feel the limit."""
    program = instrumented("reduction")
    done = mpirun(2, measured(f"ulimit -f {kilobytes}; MEASURED {program} plain", tmp_path, library), SOCKETS)
    assert done.returncode == 0, done.stderr
    assert not done.stdout
    if list(tmp_path.glob("profile-*")):
        whole = kilobytes == 600
        assert merged(tmp_path).metadata.complete is whole


def test_a_rank_that_cannot_write_its_folder(instrumented: Program, library: Path, tmp_path: Path) -> None:
    program = instrumented("reduction")
    script = f"if [ $OMPI_COMM_WORLD_RANK = 1 ]; then cd /; MEASURED/absent {program}; else MEASURED {program}; fi"
    done = mpirun(3, measured(script, tmp_path, library), {})
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("this process is not measured") == 1
    assert [path.name for path in tmp_path.glob("reduced-*")] == []
    run = merged(tmp_path).metadata
    assert run.partial
    assert any("1 of 3 ranks left no files" in problem for problem in run.problems)


@pytest.mark.parametrize("mpi", ["", MPICH], ids=["default", "mpich"])
def test_the_error_handler_is_called_as_often_as_without_us(
    libraries: Callable[[str], Path], tmp_path: Path, mpi: str
) -> None:
    program = compile_program("refused", tmp_path, mpi=mpi)
    plain = mpirun(1, [program], {}, mpi)
    under = mpirun(1, ["env", f"LD_PRELOAD={preloaded(libraries(mpi))}", f"QUIPU_DIR={tmp_path}", program], {}, mpi)
    assert (under.returncode, under.stdout) == (plain.returncode, plain.stdout)
    assert "rank 1 1\n" in plain.stdout


@pytest.mark.parametrize("name", ["with a space", "with:a colon", "plain"])
@pytest.mark.parametrize("raw", ["raw", "raw folder"])
def test_a_library_whose_path_cannot_be_preloaded(
    instrumented: Program, library: Path, tmp_path: Path, name: str, raw: str
) -> None:
    cache, folder = tmp_path / name, tmp_path / raw
    cache.mkdir()
    folder.mkdir()
    shutil.copy(library, cache)
    shim = native_file("quipu-exec")
    settings = {"QUIPU_DIR": str(folder), "QUIPU_PRELOAD": str(cache / library.name)}
    if ":" in name:  # of which a library cannot be told where others are
        settings["LD_LIBRARY_PATH"] = str(native_file("libquipu.so").parent)
    done = mpirun(2, [shim, instrumented("reduction")], settings)
    assert (done.returncode, done.stderr) == (0, "")
    run = merged(folder)
    assert run.metadata.complete
    assert "MPI_Send" in {region.name for region in run.tree.regions}
    for left in Path("/tmp").glob(f"quipu-{os.geteuid()}-*.so"):
        if str(left.readlink()).startswith(str(tmp_path)):
            left.unlink()


def test_a_spawned_process_is_no_rank(instrumented: Program, library: Path, tmp_path: Path) -> None:
    """The library is loaded by LD_PRELOAD."""
    program = instrumented("spawns")
    # Open MPI 4 reaches a process of another job by TCP only.
    environment = {**SOCKETS, "QUIPU_DIR": str(tmp_path)}
    done = mpirun(2, ["env", f"LD_PRELOAD={library}", program], environment)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("profile-*"))) == 3
    run = merged(tmp_path)
    assert run.metadata.ranks == 2
    assert run.metadata.partial
    assert any("1 process is not a rank of this run" in problem for problem in run.metadata.problems)
    (work,) = [path for path in range(len(run.tree)) if run.tree.key(path)[-1] == "work"]
    assert run.statistics["visits"].mean[work] == 1
