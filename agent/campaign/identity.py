# SPDX-License-Identifier: Apache-2.0
"""The fingerprint of a run before its launch, and the check whether stored runs are outdated.

A fingerprint contains facts (such as the command and the machine) and the identities of the programs and scripts.
"""

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
    """Return the fingerprint of a launch, with the scripts in its command.

    The merge later adds the programs of the processes. Simulated ranks are not processes, so this function adds their
    program. Counts do not depend on the machine and the MPI library; the fingerprint of a count-only run does not
    contain these. A count-only run with simulated ranks contains the command only if it belongs to a campaign.

    template: facts of the campaign of the run (`Campaign.template`); None: no campaign.
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
    """Return the facts of a fingerprint about the measuring options."""
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
    """Return the reasons why a stored run is outdated; empty if the run is current, or has no fingerprint.

    now: the present facts of the campaign, as far as they are known without a launch. The function also compares the
    stored identity of each program with the present file.
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
    """Return a text that describes this machine: the name and the number of its processors."""
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
