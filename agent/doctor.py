# SPDX-License-Identifier: Apache-2.0
"""The checks of `quipu doctor`: whether each component is installed and works, and the command that installs it."""

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

from .installation import REINSTALL, native_file, native_folders, quipu_version
from .launch.launchers.detect import launcher_for
from .launch.launchers.simulated import Simulated
from .launch.node_counters import ENERGY, MEMORY, NodeCounters
from .source.modules import modules

_ANSWER = 30.0  # time limit of a command that a check runs, in seconds
_ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # Open MPI 5
}
_EXCHANGE = """#include <mpi.h>
int main(int count, char **words) {
    int mine = 1, sum = 0;
    MPI_Init(&count, &words);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum != 2;
}
"""
_LITTLE_DISK = 1 << 30  # smallest free space that is enough, in bytes
# The compiler wrappers are missing if there was no LLVM when Quipu was installed (CMakeLists.txt).
_COMPILER_SIDE = f"apt-get install clang-19 llvm-19-dev g++, then {REINSTALL}"


@dataclass(frozen=True)
class Check:
    """The result of one check.

    - ok: whether the component is installed and works. found: its version or state.
    - needed_for: the functions of Quipu that need it. optional: whether Quipu is usable without it.
    - remedy: the command that installs or repairs it; "" if ok.
    """

    name: str
    ok: bool
    found: str
    needed_for: str
    remedy: str = ""
    optional: bool = False

    def __post_init__(self) -> None:
        """Remove the remedy if the component is ok."""
        if self.ok:
            object.__setattr__(self, "remedy", "")


def checks(folder: Path | str = ".", root: Path | str = "/") -> list[Check]:
    """Run all checks and return their results. A missing component raises no exception.

    folder: the folder for experiments, whose disk is checked. root: the folder that contains `sys`, from which the
    counters of this node are read; tests use another folder than /.
    """
    return [
        _python(),
        _tool("clang-19", "C and C++ compiler wrappers, building the MPI library", "clang-19"),
        _tool("flang-new-19", "quipu-fc and quipu-mpifort", "flang-19", optional=True),
        *_mpi(),
        _simgrid(),
        *_native(),
        _mpi_library(),
        _psutil(),
        _perf_events(),
        *_node_counters(Path(root)),
        _clock(),
        _disk(Path(folder)),
    ]


def _answer(command: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command and return its exit code and output (stdout and stderr).

    The exit code is -1, and the output a reason, if the command did not start or took longer than `_ANSWER`.
    """
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
    return Check("Python", ok, found, "everything (3.11 or later)", "apt-get install python3.11")


def _tool(name: str, needed_for: str, package: str, optional: bool = False) -> Check:
    path = shutil.which(name)
    remedy = f"apt-get install {package}"
    if path is None:
        return Check(name, False, "not in PATH", needed_for, remedy, optional)
    code, text = _answer([path, "--version"])
    return Check(name, code == 0, _first_line(text) or path, needed_for, remedy, optional)


def _mpi() -> list[Check]:
    """Return the checks of MPI: compiler wrapper, launcher, whether they belong together, and runs with two ranks."""
    install, needed_for = "apt-get install libopenmpi-dev openmpi-bin", "measuring MPI programs"
    compiler, launcher = shutil.which("mpicc"), shutil.which("mpirun") or shutil.which("mpiexec")
    code, text = (-1, "") if compiler is None else _answer([compiler, "--version"])
    version = "not in PATH" if compiler is None else f"{compiler}: {_first_line(text)}"
    found = [Check("mpicc", code == 0, version, "compiling MPI programs and the MPI library", install)]
    if launcher is None:
        return [*found, Check("mpirun", False, "not in PATH", needed_for, install)]
    _, text = _answer([launcher, "--version"], _ROOT)
    family = launcher_for(text)
    name = f"{family.family} {family.version} ({launcher})" if family else f"{launcher}: {_first_line(text)}"
    found.append(Check("mpirun", family is not None, name, needed_for, f"{install} (unknown kind)"))
    if compiler is not None and family is not None:
        found.append(_belong_together(compiler, family.family, launcher))
    code, text = _answer([launcher, "-n", "2", "true"], _ROOT)
    answer = "starts 2 processes" if code == 0 else f"exit code {code}: {_first_line(text)}"
    found.append(Check("MPI start", code == 0, answer, needed_for, f"{launcher} -n 2 true"))
    return [*found, _mpi_messages(compiler, launcher)] if compiler and all(check.ok for check in found) else found


def _mpi_messages(compiler: str, launcher: str) -> Check:
    """Check that two ranks can communicate. The program prints nothing, so that any output is a warning of MPI."""
    name, needed_for = "MPI messages", "output of MPI programs without lines of the MPI library"
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "exchange.c", Path(folder) / "exchange"
        source.write_text(_EXCHANGE, encoding="ascii")
        code, text = _answer([compiler, str(source), "-o", str(program)])
        if code:
            return Check(name, False, f"{compiler}: exit code {code}: {_first_line(text)}", needed_for, compiler)
        code, text = _answer([launcher, "-n", "2", str(program)], _ROOT)
    if code:
        return Check(name, False, f"exit code {code}: {_first_line(text)}", needed_for, f"{launcher} -n 2 PROGRAM")
    lines = text.splitlines()
    answer = "2 ranks exchange a message"
    if lines:
        answer += f", and the MPI library prints {len(lines)} lines: {lines[0]}"
    remedy = "Open MPI on one host: export OMPI_MCA_btl=^tcp,ofi (shared memory instead of TCP)"
    return Check(name, not lines, answer, needed_for, remedy, optional=True)


def _simgrid() -> Check:
    """Check for SimGrid: the simulator, and the compiler wrapper for programs to simulate."""
    needed_for = "simulated ranks (--launcher smpi, quipu-smpicc)"
    remedy = f"apt-get install {Simulated.packages}"
    missing = [name for name in ("smpirun", "smpicc") if shutil.which(name) is None]
    if missing:
        return Check("SimGrid", False, f"{' and '.join(missing)} missing", needed_for, remedy, optional=True)
    _, text = _answer(["smpirun", "--version"])
    version = Simulated.answer.search(text)
    found = f"SimGrid {version[1]}" if version else _first_line(text) or "smpirun --version prints nothing"
    return Check("SimGrid", version is not None, found, needed_for, remedy, optional=True)


def _belong_together(compiler: str, family: str, launcher: str) -> Check:
    """Check that mpicc and mpirun belong to the same MPI. If not, a program runs as several jobs with one rank each."""
    needed_for = "running what mpicc built"
    try:
        from quipu.mpi_wrap.installation import describe_mpicc

        of_compiler = describe_mpicc(compiler).family
    except QuipuError as error:
        return Check("mpicc and mpirun", False, str(error), needed_for, "apt-get install libopenmpi-dev clang-19")
    kinds = {"Open MPI": "openmpi", "MPICH": "mpich", "Intel MPI": "mpich", "MVAPICH": "mpich"}
    ok = kinds.get(of_compiler) == family or family == "slurm"
    remedy = f"put the mpicc that belongs to {launcher} first in PATH, or: update-alternatives --config mpi"
    return Check("mpicc and mpirun", ok, f"{of_compiler} and {family}", needed_for, remedy)


def _native() -> list[Check]:
    """Return the checks of the native parts. There is one pass plugin for each supported version of LLVM."""
    plugins = sorted(path.name for path in native_folders()[0].glob("QuipuPass-*.so"))
    return [
        _part("QuipuPass-19.so", "the compiler wrappers", _load, _COMPILER_SIDE),
        *(_part(name, "QUIPU_CC and QUIPU_CXX", _load) for name in plugins if name != "QuipuPass-19.so"),
        _part("libquipu.so", "every measurement", _load),
        _part("libquipu_merge.so", "joining the profiles of a run", _load),
        _part("quipu-exec", "quipu run", _runs),
        _part("quipu-cc", "the compiler wrappers", _runs, _COMPILER_SIDE),
        _cmake_package(),
        _fit_together(),
    ]


def _cmake_package() -> Check:
    path = native_folders()[0].parent / "cmake" / "Quipu" / "QuipuConfig.cmake"
    return Check("CMake package", path.exists(), str(path.parent), "find_package(Quipu)", REINSTALL)


def _fit_together() -> Check:
    """Check that all native parts have the same version. Single files may have been replaced after the installation."""
    folder = native_folders()[0]
    found = {
        path.name: module
        for path in [folder / "libquipu.so", *sorted(folder.glob("QuipuPass-*.so"))]
        for module in modules(path)
    }
    known = {(module.version, module.interface) for module in found.values()}
    versions = ", ".join(f"{name} {module.version}-{module.interface:08x}" for name, module in sorted(found.items()))
    ok = len(known) == 1 and quipu_version() in ("unknown", *(version for version, _ in known))
    stated = versions or "no part contains a version"
    return Check("native parts", ok, stated, "measuring what the wrappers built", REINSTALL)


def _part(name: str, needed_for: str, test: Callable[[Path], str], missing: str = REINSTALL) -> Check:
    """Find a native part and test it.

    test: function that returns why the part does not work, "" if it works. missing: the remedy if the part does not
    exist.
    """
    try:
        path = native_file(name)
    except QuipuError:
        return Check(name, False, "not found", needed_for, missing)
    trouble = test(path)
    return Check(name, not trouble, trouble or str(path), needed_for, REINSTALL)


def _load(path: Path) -> str:
    """Return why a shared library cannot be loaded, "" if it can. A child process loads it, because it may crash."""
    code, text = _answer([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", str(path)])
    undefined = "undefined symbol" in text  # no fault: the compiler that loads a plugin defines these symbols
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
    needed_for = "hardware counters"
    try:
        level = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        found = "not offered by this kernel"
        return Check("perf events", False, found, needed_for, "use a kernel with perf events", optional=True)
    ok = level <= 2 or os.geteuid() == 0
    remedy = "sysctl kernel.perf_event_paranoid=2"
    return Check("perf events", ok, f"perf_event_paranoid = {level}", needed_for, remedy, optional=True)


def _node_counters(root: Path) -> list[Check]:
    """Return the checks of the counters of this node: energy, and bytes to and from memory."""
    counters = NodeCounters(str(root))
    found = [
        _node_counter(counters, ENERGY, "energy of a run", "chmod a+r /sys/class/powercap/*/energy_uj"),
        _node_counter(counters, MEMORY, "memory traffic of a run", "sysctl kernel.perf_event_paranoid=0"),
    ]
    counters.close()
    return found


def _node_counter(counters: NodeCounters, kind: str, needed_for: str, remedy: str) -> Check:
    names = counters.names(kind)
    missing = "not offered by this kernel (a virtual machine?)"
    found = ", ".join(names) or counters.refused.get(kind, missing)
    remedy = remedy if kind in counters.refused else "use a machine whose kernel offers it"
    return Check(f"node {kind}", bool(names), found, needed_for, remedy, optional=True)


def _clock() -> Check:
    """Check for an invariant time stamp counter. Without it, Quipu reads the system clock, which takes longer."""
    needed_for = "cheap time stamps (otherwise QUIPU_CLOCK=monotonic is used)"
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        return Check("invariant TSC", False, error.strerror or "unknown", needed_for, "mount /proc", True)
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    ok = flags is not None and {"constant_tsc", "nonstop_tsc"} <= set(flags.group(1).split())
    found = "constant_tsc, nonstop_tsc" if ok else "not announced by this processor"
    return Check("invariant TSC", ok, found, needed_for, "export QUIPU_CLOCK=monotonic", True)


def _disk(folder: Path) -> Check:
    needed_for = "raw profiles and run archives"
    try:
        free = shutil.disk_usage(folder).free
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return Check("disk", False, f"{folder}: {error.strerror}", needed_for, "choose another folder with -o")
    found = f"{free / (1 << 30):.1f} GiB free in {folder.absolute()}"
    return Check("disk", free >= _LITTLE_DISK, found, needed_for, "free space, or choose another folder with -o")
