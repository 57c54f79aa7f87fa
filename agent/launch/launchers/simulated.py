# SPDX-License-Identifier: Apache-2.0
"""The launcher smpirun of SimGrid, which executes all ranks in one process and simulates their communication."""

from __future__ import annotations

import hashlib
import re
import resource
from collections.abc import Sequence
from pathlib import Path

from quipu.modeling.errors import FormatError, MeasurementError, UsageError
from quipu.modeling.limits import whole_number
from quipu.mpi_wrap.program import mpi_of_program

from .base import Launcher, LaunchPlan, LaunchRequest, find_program, is_program
from .options import SMPIRUN, contexts

HOST_SPEED, SIMULATE, STACK_SIZE = "smpi/host-speed", "smpi/simulate-computation", "contexts/stack-size"
# _POLL: simulated seconds that an unsuccessful MPI_Test or MPI_Iprobe takes. The default of SMPI, 1e-4, is the time of
# about 100 messages.
_POLLS, _POLL = ("smpi/test", "smpi/iprobe"), "1e-6"
# Stack of each rank in KiB: the default of SimGrid, and the size that Quipu sets if the shell has no limit (ulimit -s).
# The stack is only address space; memory is used when a rank writes to it.
_STACK, _UNLIMITED_STACK = 8192, 65536
_SPEED = re.compile(r"<(?:host|cluster|peer|cabinet)\b[^>]*?\bspeed\s*=\s*[\"']\s*([^\"',\s]+)")
_LARGEST_PLATFORM = 1 << 26  # bytes of a platform file that is read
_LONGEST_FACT = 20_000  # characters of a platform that is stored with the run


def smpirun_command(program: Sequence[str], ranks: int | None, platform: Path | None) -> tuple[str, ...]:
    """Return the smpirun command for a program and its arguments.

    platform: file that describes the simulated machine; None: the plan later adds `default_platform`. Raises UsageError
    if the program is missing, or if neither the number of ranks nor a platform is given.
    """
    if not program:
        raise UsageError("no program to simulate; write it after --, such as: -n 1024 -- ./app")
    if ranks is None and platform is None:
        raise UsageError("-n N is missing: give the number of ranks to simulate, or a --platform with a host per rank")
    if ranks is not None and ranks < 1:
        raise UsageError(f"-n {ranks}: give 1 rank or more")
    number = ("-np", str(ranks)) if ranks is not None else ()
    hosts = ("-platform", str(platform)) if platform is not None else ()
    return ("smpirun", *number, *hosts, "--log=xbt_cfg.thres:warning", *program)


def default_platform(ranks: int) -> str:
    """Return a SimGrid platform (XML) with one host for each rank: node-0, node-1, …

    Each host computes 10 Gflop/s. It has a link to a crossbar with a bandwidth of 12.5 GB/s (100 Gbit/s) in each
    direction and a latency of 0.5 µs. A message between two hosts uses two links: 12.5 GB/s and 1 µs, before SMPI
    applies its factors for message sizes. The link of a host to itself has 40 GB/s and 0.1 µs.
    """
    return f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="quipu" prefix="node-" suffix="" radical="0-{ranks - 1}" speed="10Gf" bw="12.5GBps" lat="0.5us"
           loopback_bw="40GBps" loopback_lat="0.1us"/>
</platform>
"""


class Simulated(Launcher):
    """smpirun of SimGrid. One simulator process loads the program as a library for each rank (SMPI).

    quipu-exec therefore starts the simulator, and not the ranks.
    """

    family, title = "smpi", "SimGrid"
    commands = ("smpirun",)
    packages = "libsimgrid-dev"
    answer = re.compile(r"^SimGrid version (\d[\w.]*)", re.MULTILINE)

    def plan(self, request: LaunchRequest) -> LaunchPlan:
        """Return a plan with quipu-exec as -wrapper, a platform if none is given, and settings of the simulation.

        The settings are the speed of the hosts, the time of an unsuccessful MPI_Test, and the stack of a rank.
        """
        command = request.command
        context = contexts(command, SMPIRUN, lambda word: is_program(word, request.environment, request.folder))[0]
        if context.has("replay"):
            raise MeasurementError("smpirun -replay: a replay runs no program, so Quipu cannot measure it")
        program = find_program(command[context.program], request.environment, (request.folder,))
        ranks = whole_number(context.last("np", "n") or "") or None
        options = list(command[1 : context.program])
        files: dict[Path, str] = {}
        notes = []
        platform = request.folder / (context.last("platform") or "")
        if context.has("platform"):
            _expect_platform(platform)
        if not context.has("platform", "hostfile", "machinefile", "bandwidth", "latency"):
            if ranks is None:
                raise MeasurementError("smpirun: how many ranks? Give -np N, or -platform FILE")
            platform = Path(request.variables["QUIPU_DIR"]) / "platform.xml"
            files[platform] = default_platform(ranks)
            options += ["-platform", str(platform)]
            notes.append(f"a platform of {ranks} hosts with links of 12.5 GB/s and 0.5 µs (give yours with -platform)")
        if not any(word.startswith(f"--cfg={HOST_SPEED}:") for word in command):
            speed = _host_speed(files.get(platform) or _content(platform))
            if speed:
                machine = "this machine" if request.rates is None else "the machine of the rates"
                options.append(f"--cfg={HOST_SPEED}:{speed}")
                notes.append(f"--cfg={HOST_SPEED}:{speed} (computation takes as long as on {machine})")
            elif request.rates is not None:
                raise MeasurementError(
                    f"{platform}: its hosts have different speeds; give the speed of the machine of the rates in the "
                    f"same unit: -- smpirun --cfg={HOST_SPEED}:10Gf …"
                )
        polls = [f"--cfg={name}:{_POLL}" for name in _POLLS if not any(f"--cfg={name}:" in word for word in command)]
        if polls:
            options += polls
            notes.append(f"{' '.join(polls)} (simulated seconds of one MPI_Test or MPI_Iprobe; SMPI's default is 1e-4)")
        stack = next((word for word in command if word.startswith(f"--cfg={STACK_SIZE}:")), "")
        if not stack and (size := _stack_limit()) > _STACK:
            options.append(stack := f"--cfg={STACK_SIZE}:{size}")
            notes.append(f"{stack} (KiB of stack for each rank, after ulimit -s)")
        variables = dict(request.variables)
        if request.rates is not None:
            if any(word.startswith(f"--cfg={SIMULATE}:") for word in command):
                raise MeasurementError(f"smpirun --cfg={SIMULATE}: cannot be given with --compute effort; leave it out")
            path = Path(request.variables["QUIPU_DIR"]) / "rates.tsv"
            files[path], variables["QUIPU_RATES"] = request.rates, str(path)
            options.append(f"--cfg={SIMULATE}:no")
        wrapper = " ".join(word for word in (str(request.shim), context.last("wrapper")) if word)
        if any(character in str(request.shim) for character in " \t*?["):
            raise MeasurementError(f"smpirun cannot call {request.shim}: install Quipu in a folder without spaces")
        return LaunchPlan(
            argv=(command[0], *options, "-wrapper", wrapper, *command[context.program :]),
            environment=variables,
            notes=tuple(notes),
            ranks=ranks,
            programs=(program,),
            family=self.family,
            version=self.version,
            is_mpi=True,
            files=files,
            details={
                **({} if request.rates is None else {"compute": "effort"}),
                **_details(platform, files.get(platform) or _content(platform)),
            },
            rank_processes=False,
            if_it_crashes="the error may be in the program (run it by smpirun without Quipu), or a rank needs more "
            f"stack than {stack.rpartition(':')[2] or _STACK} KiB (large automatic arrays of Fortran): then use "
            f"ulimit -s or smpirun --cfg={STACK_SIZE}:KIB",
            if_unmeasured=_if_unmeasured(program),
        )


def _if_unmeasured(program: Path) -> str:
    """Return a possible reason for missing profiles: the program is not linked with SMPI; empty if it is."""
    if mpi_of_program(program) is not None:
        return ""
    return (
        f"A simulation loads the program itself, and {program.name} was not linked with SMPI (a shell, a script, env, "
        "an interpreter?): give the program that quipu-smpicc built, and set variables of a script in the "
        "environment"
    )


def _stack_limit() -> int:
    """Return the current limit of the stack in KiB (ulimit -s); _UNLIMITED_STACK if there is no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _UNLIMITED_STACK if soft == resource.RLIM_INFINITY else soft // 1024


def _content(platform: Path) -> str:
    """Return the text of a platform file; empty if it is too large or not text (SMPI also accepts C++ libraries)."""
    try:
        if platform.is_file() and platform.stat().st_size <= _LARGEST_PLATFORM:
            return platform.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        pass
    return ""


def _expect_platform(platform: Path) -> None:
    """Check a platform file, because SimGrid would abort. Files that do not end with .xml are not read.

    Raises MeasurementError if the file does not exist, FormatError if it is not XML.
    """
    if not platform.is_file():
        raise MeasurementError(f"{platform}: the platform file does not exist")
    if platform.suffix != ".xml" or platform.stat().st_size > _LARGEST_PLATFORM:
        return
    from xml.parsers import expat  # imported here because other launches do not need it

    try:
        expat.ParserCreate().Parse(platform.read_bytes(), True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        raise FormatError(platform, f"is not a SimGrid platform: not XML ({what})", error.lineno) from error


def _details(platform: Path, text: str) -> dict[str, str]:
    """Return the facts to store about a platform: its text, or its path and SHA-256 checksum if the text is long."""
    if len(text) <= _LONGEST_FACT:
        return {"platform": text or str(platform)}
    return {"platform": str(platform), "platform_sha256": hashlib.sha256(text.encode()).hexdigest()}


def _host_speed(platform: str) -> str:
    """Return the speed of all hosts as written in the platform ("10Gf"); empty if hosts have different speeds."""
    speeds = set(_SPEED.findall(platform))
    return speeds.pop() if len(speeds) == 1 else ""
