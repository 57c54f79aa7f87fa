# SPDX-License-Identifier: Apache-2.0
"""Build libquipu_mpi.so for an MPI on first use, and find it in a cache afterwards.

The cache is ${XDG_CACHE_HOME:-~/.cache}/quipu/mpi. Each build has a folder whose name ends with a hash over all
inputs: the preprocessed mpi.h, the table of MPI operations (operations.toml), the generator, the sources of the
wrappers, the flags, the version of clang, the path of the runtime and its headers. A finished folder is renamed to its
final name in one step, so several processes may build at once.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from quipu.modeling.errors import EnvironmentProblem, MeasurementError
from quipu.modeling.prefix import NATIVE, prefix, user_cache

from .installation import LIBRARY, MpiInstallation, describe_mpicc
from .prototypes import INCLUDE, program_files, run_clang, source_files
from .remembered import remembered

RUNTIME = "libquipu.so"


def mpi_library(
    mpicc: str | MpiInstallation | None = None,
    *,
    runtime_include: Path | None = None,
    runtime_lib: Path | None = None,
    clang: str = "clang-19",
    verbose: bool = False,
) -> Path:
    """Return the path of the PMPI library for the MPI of this mpicc (default: $QUIPU_MPICC, or `mpicc` in PATH).

    runtime_include: folder of quipu.h. runtime_lib: libquipu.so. Default: the files of the installation ($QUIPU_HOME,
    else this Python environment). clang: the command that reads mpi.h and compiles the library.

    Builds the library if it is not in the cache, and prints a message on standard error. verbose: print a message also
    if the library is in the cache.

    Raises EnvironmentProblem if clang, MPI, the runtime or a writable folder is missing, MeasurementError if building
    fails.
    """
    include, runtime = runtime_files(runtime_include, runtime_lib)
    installation = mpicc if isinstance(mpicc, MpiInstallation) else describe_mpicc(mpicc, clang=clang)
    name = _folder_name(installation, include, runtime, clang)
    for cache in _caches():
        found = cache / name / LIBRARY
        stranger = _stranger(cache.parent, cache, found.parent, found)
        if stranger is not None:
            print(
                f"quipu: {stranger} belongs to another user, or others may write there: its contents are not loaded "
                "into programs; trying elsewhere",
                file=sys.stderr,
            )
            continue
        if found.is_file():
            if verbose:
                print(f"quipu: {found} ({installation})", file=sys.stderr)
            return found
        try:
            cache.mkdir(mode=0o755, parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=cache))
        except OSError as error:
            print(f"quipu: cannot write {cache} ({error.strerror}); trying elsewhere", file=sys.stderr)
            continue
        try:
            print(f"quipu: building the MPI library for {installation} (once) ...", file=sys.stderr, flush=True)
            from .build import build  # not at the top: only a build needs the table and the generator

            build(installation, scratch, runtime_include=include, runtime_lib=runtime, clang=clang)
            _publish(scratch, cache / name)
        except OSError as error:
            raise MeasurementError(
                f"cannot build {found}: {error.strerror}. Set XDG_CACHE_HOME to a writable folder"
            ) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return found
    raise EnvironmentProblem("the MPI library needs a writable folder. Set XDG_CACHE_HOME or TMPDIR to one")


def runtime_files(include: Path | None = None, library: Path | None = None) -> tuple[Path, Path]:
    """Return the folder of quipu.h and the path of libquipu.so: the arguments, or by default the installed files.

    Raises EnvironmentProblem if a file is missing.
    """
    native = prefix() / NATIVE
    include = include or native / "include"
    library = library or native / RUNTIME
    for path in (include / "quipu.h", library):
        if not path.is_file():
            raise EnvironmentProblem(
                f"{path} is missing. Install Quipu completely (in its source folder: make build), or set QUIPU_HOME "
                "to the folder that has lib/quipu"
            )
    return include.resolve(), library.resolve()


def _folder_name(installation: MpiInstallation, include: Path, runtime: Path, clang: str) -> str:
    """Return the folder name of a build. remembered.py stores the name until one of the inputs changes."""
    parts = (
        str(installation),
        *installation.compile_flags,
        *installation.link_flags,
        str(runtime),
        str(include),
        clang,
    )
    return str(remembered("library", parts, lambda: _new_folder_name(installation, include, runtime, clang)))


def _new_folder_name(installation: MpiInstallation, include: Path, runtime: Path, clang: str) -> tuple[str, list[Path]]:
    """Compute the folder name of a build. Return the name, and the files and folders that it depends on."""
    from quipu.modeling.mpi_operations import __file__ as operations

    from .build import COMPILE, HAND_WRITTEN
    from .table import TABLE

    digest = hashlib.sha256()
    header = run_clang(clang, [*installation.compile_flags, "-E", "-dD"], INCLUDE)
    digest.update(header.encode())
    digest.update(run_clang(clang, ["--version"], "").encode())
    for part in (*installation.compile_flags, *installation.link_flags, *COMPILE, str(runtime)):
        digest.update(part.encode() + b"\0")
    generator = sorted(Path(__file__).parent.glob("*.py"))
    contracts = sorted(include.glob("*.h")) + sorted(include.glob("*.def"))
    sources = [TABLE, Path(operations), *generator, *sorted(HAND_WRITTEN.rglob("*")), *contracts]
    for path in sources:
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    label = re.sub(r"[^a-z0-9.]+", "-", str(installation).lower()).strip("-")
    name = f"{label}-{digest.hexdigest()[:16]}"
    # The modification time of a folder changes when a file is added or removed.
    folders = [Path(__file__).parent, HAND_WRITTEN, include]
    return name, [*source_files(header), *program_files(clang), *sources, *folders]


def _caches() -> Iterator[Path]:
    """Yield the folders for builds: first the user's cache, then a private folder in the folder of temporary files."""
    cache = user_cache()
    if cache is not None:
        yield cache / "mpi"
    private = Path(tempfile.gettempdir()) / f"quipu-mpi-{os.getuid()}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return
    yield private


def _stranger(*paths: Path) -> Path | None:
    """Return the first path that users other than this user and root may replace or modify; None if all are safe.

    A user with write access to the library or its folder could preload other code into programs. A missing path is
    safe. If a path belongs to this user and others may write to it (for example with umask 002), this function removes
    the write permission of group and others.
    """
    for path in paths:
        try:
            status = path.lstat()
            mine = status.st_uid == os.getuid()
            if mine and status.st_mode & 0o022 and not stat.S_ISLNK(status.st_mode):
                path.chmod(stat.S_IMODE(status.st_mode) & ~0o022)
                status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return path
        # In a folder with the sticky bit, such as /tmp, users cannot replace files of other users.
        closed = not status.st_mode & 0o022 or stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX
        if not closed or not (mine or status.st_uid == 0):
            return path
    return None


def _publish(scratch: Path, final: Path) -> None:
    """Rename the finished folder to its final name. If another process was faster, keep the folder of that process."""
    scratch.chmod(0o755)
    (scratch / LIBRARY).chmod(0o755)
    try:
        scratch.rename(final)
    except OSError:
        if not (final / LIBRARY).is_file():
            raise
