"""What Quipu needs, whether it is there, and the command that installs or repairs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from quipu.modeling.errors import QuipuError

from .installation import REINSTALL, modules, native_file, native_folders, quipu_version
from .launch.launchers.detect import launcher_for

_ANSWER = 30.0  # seconds for a question to a tool
_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
_LITTLE_DISK = 1 << 30


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    ok: it is as it should be. optional: much works without it. found: what is there. needed_for: what does not work
    without it. remedy: the command that installs or repairs it, empty if ok.
    """

    name: str
    ok: bool
    found: str
    needed_for: str
    remedy: str = ""
    optional: bool = False


def checks(folder: Path | str = ".") -> list[Check]:
    """Look at everything and return what was found; nothing raises. folder: where experiments are to be stored."""
    result = [_python(), _tool("clang-19", "C and C++ compiler wrappers, building the MPI library", "clang-19")]
    result.append(_tool("flang-new-19", "quipu-fc and quipu-mpifort", "flang-19", optional=True))
    result.extend(_mpi())
    result.extend(_native())
    result.extend([_mpi_library(), _psutil(), _perf_events(), _clock(), _disk(Path(folder))])
    return result


def _answer(command: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Return exit code and output of a question to a tool; -1 if it could not be asked or did not answer."""
    try:
        answer = subprocess.run(
            list(command),
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_ANSWER,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no answer within {_ANSWER:.0f} s"
    except OSError as error:
        return -1, error.strerror or str(error)
    return answer.returncode, answer.stdout.decode("utf-8", "replace").strip()


def _first_line(text: str) -> str:
    return text.splitlines()[0].strip() if text else ""


def _python() -> Check:
    found = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info >= (3, 11)
    return Check("Python", ok, found, "everything (3.11 or later)", "" if ok else "apt-get install python3.11")


def _tool(name: str, needed_for: str, package: str, optional: bool = False) -> Check:
    path = shutil.which(name)
    remedy = f"apt-get install {package}"
    if path is None:
        return Check(name, False, "missing", needed_for, remedy, optional)
    code, text = _answer([path, "--version"])
    ok = code == 0
    return Check(name, ok, _first_line(text) or path, needed_for, "" if ok else remedy, optional)


def _mpi() -> list[Check]:
    """Return the checks of compiler wrapper, launcher, whether the two belong together, and a start of two ranks."""
    install = "apt-get install libopenmpi-dev openmpi-bin"
    compiler, launcher = shutil.which("mpicc"), shutil.which("mpirun") or shutil.which("mpiexec")
    found = [_mpicc(compiler, install)]
    if launcher is None:
        found.append(Check("mpirun", False, "missing", "measuring MPI programs", install))
        return found
    _, text = _answer([launcher, "--version"], _ROOT)
    family = launcher_for(text)
    name = f"{family.family} {family.version} ({launcher})" if family else f"{launcher}: {_first_line(text)}"
    found.append(
        Check(
            "mpirun", family is not None, name, "measuring MPI programs", "" if family else f"{install} (unknown kind)"
        )
    )
    if compiler is not None and family is not None:
        found.append(_belong_together(compiler, family.family, launcher))
    code, text = _answer([launcher, "-n", "2", "true"], _ROOT)
    answer = "starts 2 processes" if code == 0 else f"exit code {code}: {_first_line(text)}"
    found.append(
        Check("MPI start", code == 0, answer, "measuring MPI programs", "" if code == 0 else f"{launcher} -n 2 true")
    )
    return found


def _mpicc(compiler: str | None, install: str) -> Check:
    needed_for = "compiling MPI programs and the MPI library"
    if compiler is None:
        return Check("mpicc", False, "missing", needed_for, install)
    code, text = _answer([compiler, "--version"])
    return Check("mpicc", code == 0, f"{compiler}: {_first_line(text)}", needed_for, "" if code == 0 else install)


def _belong_together(compiler: str, family: str, launcher: str) -> Check:
    """Compare the MPI of mpicc with that of mpirun: a program of one MPI under the other runs as many single ranks."""
    needed_for = "running what mpicc built"
    try:
        from quipu.mpi_wrap.installation import describe_mpicc

        of_compiler = describe_mpicc(compiler).family
    except QuipuError as error:
        return Check("mpicc and mpirun", False, str(error), needed_for, "apt-get install libopenmpi-dev clang-19")
    kinds = {"Open MPI": "openmpi", "MPICH": "mpich", "Intel MPI": "mpich", "MVAPICH": "mpich"}
    ok = kinds.get(of_compiler) == family or family == "slurm"
    remedy = f"put the mpicc that belongs to {launcher} first in PATH, or: update-alternatives --config mpi"
    found = f"{of_compiler} and {family}"
    return Check("mpicc and mpirun", ok, found, needed_for, "" if ok else remedy)


def _native() -> list[Check]:
    return [
        _part("QuipuPass-19.so", "the compiler wrappers", _load),
        *_further_plugins(),
        _part("libquipu.so", "every measurement", _load),
        _part("libquipu_merge.so", "joining the profiles of a run", _load),
        _part("quipu-exec", "quipu run", _runs),
        _part("quipu-cc", "the compiler wrappers", _runs),
        _fit_together(),
    ]


def _fit_together() -> Check:
    """Compare the versions of the native parts: they are installed together, but somebody may have copied some."""
    folder = native_folders()[0]
    found = {
        path.name: module
        for path in [folder / "libquipu.so", *sorted(folder.glob("QuipuPass-*.so"))]
        for module in modules(path)
    }
    known = {(module.version, module.interface) for module in found.values()}
    versions = ", ".join(f"{name} {module.version}-{module.interface:08x}" for name, module in sorted(found.items()))
    ok = len(known) == 1 and quipu_version() in ("unknown", *(version for version, _ in known))
    name, needed_for = "native parts", "measuring what the wrappers built"
    return Check(name, ok, versions or "none says its version", needed_for, "" if ok else REINSTALL)


def _further_plugins() -> list[Check]:
    """Plugins for the compilers of other LLVMs than the default one."""
    names = sorted(path.name for path in native_folders()[0].glob("QuipuPass-*.so"))
    return [_part(name, "QUIPU_CC and QUIPU_CXX", _load) for name in names if name != "QuipuPass-19.so"]


def _part(name: str, needed_for: str, test: Callable[[Path], str]) -> Check:
    try:
        path = native_file(name)
    except QuipuError:
        return Check(name, False, "missing", needed_for, REINSTALL)
    trouble = test(path)
    return Check(name, not trouble, trouble or str(path), needed_for, REINSTALL if trouble else "")


def _load(path: Path) -> str:
    """Return why a shared library cannot be loaded, empty if it can. In a process of its own: it may do anything."""
    code, text = _answer([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(path)])
    undefined = "undefined symbol" in text  # of the program that a plugin is made for
    return "" if code == 0 or undefined else text.splitlines()[-1] if text else f"exit code {code}"


def _runs(path: Path) -> str:
    code, text = _answer([str(path)])
    return "" if code >= 0 else text


def _mpi_library() -> Check:
    needed_for = "counting MPI operations"
    try:
        from quipu.mpi_wrap.library import mpi_library

        return Check("MPI library", True, str(mpi_library()), needed_for)
    except QuipuError as error:
        return Check("MPI library", False, str(error), needed_for, "apt-get install libopenmpi-dev clang-19")


def _psutil() -> Check:
    try:
        found = f"{psutil.__version__}, {psutil.cpu_count()} CPUs, load {psutil.getloadavg()[0]:.2f}"
    except (psutil.Error, OSError) as error:
        return Check("psutil", False, str(error), "data of nodes", "pip install --upgrade psutil")
    return Check("psutil", True, found, "data of nodes")


def _perf_events() -> Check:
    path = Path("/proc/sys/kernel/perf_event_paranoid")
    needed_for = "hardware counters"
    try:
        level = int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return Check(
            "perf events", False, "not offered by this kernel", needed_for, "use a kernel with perf events", True
        )
    ok = level <= 2 or os.geteuid() == 0
    remedy = "" if ok else "sysctl kernel.perf_event_paranoid=2"
    return Check("perf events", ok, f"perf_event_paranoid = {level}", needed_for, remedy, optional=True)


def _clock() -> Check:
    """Look for an invariant time stamp counter: without it the clock of the system is read, which costs more."""
    needed_for = "cheap time stamps (otherwise QUIPU_CLOCK=monotonic is used)"
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        return Check("invariant TSC", False, error.strerror or "unknown", needed_for, "mount /proc", True)
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    ok = flags is not None and {"constant_tsc", "nonstop_tsc"} <= set(flags.group(1).split())
    found = "constant_tsc, nonstop_tsc" if ok else "not announced by this processor"
    return Check("invariant TSC", ok, found, needed_for, "" if ok else "export QUIPU_CLOCK=monotonic", True)


def _disk(folder: Path) -> Check:
    needed_for = "raw profiles and run archives"
    try:
        free = shutil.disk_usage(folder).free
        with tempfile.TemporaryFile(dir=folder):
            writable = True
    except OSError as error:
        return Check("disk", False, f"{folder}: {error.strerror}", needed_for, "choose another folder with -o")
    ok = writable and free >= _LITTLE_DISK
    remedy = "" if ok else "make room, or choose another folder with -o"
    return Check("disk", ok, f"{free / (1 << 30):.1f} GiB free in {folder.absolute()}", needed_for, remedy)
