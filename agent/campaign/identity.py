# SPDX-License-Identifier: Apache-2.0
"""The fingerprint of a run before its launch, and the comparison of stored runs with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ..archive.fingerprint import Fingerprint, ProgramIdentity, differences, without_numbers
from ..launch.launchers import LaunchPlan
from ..merge.programs import identities, program_identity
from .launch_options import LaunchOptions

_SCRIPTS = (".py", ".sh")


def fingerprint_of(
    command: Iterable[str], plan: LaunchPlan, options: LaunchOptions, template: Mapping[str, str] | None = None
) -> Fingerprint:
    """Return the fingerprint of a launch with its scripts; the merge adds the programs of its processes.

    The program of simulated ranks is added here, because they are not processes. The fingerprint of a count-only run
    does not contain the machine and the MPI library, on which counts do not depend. With simulated ranks it does not
    contain the command either. template: facts of the campaign of the run.
    """
    words = list(command)
    folder = options.folder or Path()
    version = f" {plan.version}" if plan.version else ""
    template = template or {}
    facts = {**measuring_facts(options), **template}
    if "template" in template or not (options.counts_only and plan.family == "smpi"):
        facts["command"] = without_numbers(words)
    if not options.counts_only:
        facts["MPI"] = "" if plan.family == "none" else plan.family + version
        facts["machine"] = "simulated" if plan.details.get("compute") == "effort" else machine()
    scripts = (folder / word for word in words if word.endswith(_SCRIPTS) or _is_script(folder / word))
    found = {path.name: known for path in scripts if (known := program_identity(path.absolute())) is not None}
    if not plan.rank_processes:
        found |= identities((folder / program).absolute() for program in plan.programs)
    return Fingerprint(facts, found)


def measuring_facts(options: LaunchOptions) -> dict[str, str]:
    """Return the measuring options of a fingerprint."""
    facts = {
        "--functions": _yes(options.functions),
        "--python": "all" if options.python and os.environ.get("QUIPU_PYTHON") == "all" else _yes(options.python),
        "filter": _content(options.filter_file),
    }
    asked = {"--memory": options.memory, "--files": options.files, "--offload": options.offload}
    facts |= {name: "yes" for name, on in asked.items() if on}
    if not options.counts_only:
        facts["rates"] = _content(options.rates)
        facts["--mpi-wait"] = options.mpi_wait or os.environ.get("QUIPU_MPI_WAIT", "") or "local"
    return facts


def outdated(stored: Fingerprint | None, now: Mapping[str, str]) -> list[str]:
    """Return the reasons why a stored run is outdated; empty if it is current, or if this is unknown.

    now: facts of the campaign that are known without a launch. The files of the stored programs are checked again.
    """
    if stored is None:
        return []
    programs: dict[str, ProgramIdentity] = {}
    for name, known in stored.programs.items():
        if (current := program_identity(Path(known.path))) is not None:
            programs[name] = current
    return differences(stored, Fingerprint(now, programs))


@cache
def machine() -> str:
    """Return a text for the kind of this machine: the name and number of its processors."""
    name = ""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Processor", "cpu"):
                name = value.strip()
                break
    except OSError:
        pass
    return f"{name or os.uname().machine}, {os.cpu_count()} processors"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return path.is_file() and file.read(2) == b"#!"
    except (OSError, ValueError):
        return False


def _content(path: Path | None) -> str:
    known = None if path is None else program_identity(path)
    return "" if known is None else known.digest[:12]
