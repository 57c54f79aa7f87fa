# SPDX-License-Identifier: Apache-2.0
"""Building and caching the PMPI library, and telling MPIs apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from quipu.modeling.errors import EnvironmentProblem, MeasurementError
from quipu.mpi_wrap import describe_mpicc, mpi_library
from quipu.mpi_wrap.build import HAND_WRITTEN
from quipu.mpi_wrap.library import _new_folder_name, runtime_files


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def quick_clang(tmp_path: Path) -> str:
    """A clang that builds the library in a third of the time, for tests of how it is built; they have own caches."""
    folder = tmp_path / "clang"
    folder.mkdir()
    return str(script(folder, "clang", 'exec clang-19 "$@" -O0 -g0'))


def test_a_second_call_finds_the_first_build(library: Path) -> None:
    before = library.stat().st_mtime_ns
    assert mpi_library() == library
    assert library.stat().st_mtime_ns == before


def test_processes_that_build_at_once_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick_clang: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = [sys.executable, "-m", "quipu.mpi_wrap", "build", "--clang", quick_clang]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = {builder.communicate()[0].strip() for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0, 0]
    assert len(paths) == 1
    assert Path(paths.pop()).is_file()
    assert [path.name for path in (tmp_path / "quipu" / "mpi").glob(".*")] == []


def test_the_name_of_a_build_depends_on_the_folders_of_its_sources() -> None:
    """A folder changes when a file is added to it."""
    include, runtime = runtime_files()
    _, inputs = _new_folder_name(describe_mpicc(), include, runtime, "clang-19")
    assert {include, HAND_WRITTEN, *(path for path in HAND_WRITTEN.iterdir() if path.is_dir())} <= set(inputs)


def test_a_cache_that_cannot_be_written_is_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], quick_clang: str
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert mpi_library(clang=quick_clang).is_relative_to(tmp_path)
    assert f"cannot write {blocked}" in capsys.readouterr().err


def test_a_library_of_another_user_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], quick_clang: str
) -> None:
    """The folder belongs to another user, or other users can change the library."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    built = mpi_library(clang=quick_clang)
    assert mpi_library(clang=quick_clang) == built
    capsys.readouterr()
    real_lstat = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        status = real_lstat(path)
        if path != built.parent:
            return status
        return os.stat_result((*status[:4], os.getuid() + 1, *status[5:10]))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "lstat", lstat)
        elsewhere = mpi_library(clang=quick_clang)
    assert elsewhere != built
    assert f"{built.parent} belongs to another user" in capsys.readouterr().err
    built.chmod(0o777)
    assert mpi_library(clang=quick_clang) == built
    assert built.stat().st_mode & 0o022 == 0


def test_a_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentProblem, match=r"'no-such-mpicc' is not in PATH.*libopenmpi-dev"):
        mpi_library("no-such-mpicc")
    with pytest.raises(EnvironmentProblem, match=r"cannot run no-such-clang.*apt-get install"):
        mpi_library(clang="no-such-clang")
    monkeypatch.setenv("QUIPU_MPICC", "from-the-environment")
    with pytest.raises(EnvironmentProblem, match="from-the-environment"):
        mpi_library()


def test_a_missing_runtime_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match=r"quipu\.h is missing"):
        mpi_library(runtime_include=tmp_path)


def test_a_compiler_without_mpi_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="prints no compile options"):
        describe_mpicc(str(script(tmp_path, "mpicc", "exit 1")))
    with pytest.raises(MeasurementError, match=r"cannot read mpi\.h"):
        describe_mpicc(str(script(tmp_path, "mpicc", f"echo gcc -I{tmp_path} -lmpi")))


def test_mpich_style_answers_are_understood(tmp_path: Path) -> None:
    (tmp_path / "mpi.h").write_text('#define MPICH_VERSION "4.0.2"\n')
    answers = f'case "$1" in -compile_info) echo "gcc -g -O2 -I {tmp_path} -DX=1";; -link_info) '
    answers += 'echo "gcc -Wl,-z,relro -L/opt/lib -Wl,-rpath -Wl,/opt/lib -lmpich";; *) exit 1;; esac'
    found = describe_mpicc(str(script(tmp_path, "mpicc", answers)))
    assert (found.family, found.version) == ("MPICH", "4.0.2")
    assert found.compile_flags == ("-I", str(tmp_path), "-DX=1")
    assert found.link_flags == ("-L/opt/lib", "-Wl,-rpath", "-Wl,/opt/lib", "-lmpich")
