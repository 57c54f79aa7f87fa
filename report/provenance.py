# SPDX-License-Identifier: Apache-2.0
"""Facts about the origin of measurements: command, machine, launcher, dates."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from .measured_run import Metadata
from .node_use import node_use

_MOST_HOSTS = 4


def provenance(runs: Sequence[Metadata]) -> list[tuple[str, str]]:
    """Return (label, text) pairs about the runs of an experiment. Unknown facts are left out."""
    launchers = [f"{run.launcher.get('family', '')} {run.launcher.get('version', '')}" for run in runs]
    added = [f"{name}={value}" for run in runs for name, value in run.environment_added.items()]
    facts = [
        ("command", _command([run.command for run in runs])),
        ("runs", _counts(runs)),
        ("measured", _dates([run.started for run in runs if run.started])),
        ("machine", _machine(runs)),
        ("launcher", _distinct(launchers)),
        ("nodes used", ", ".join(node_use(runs))),
        ("added to the environment", _distinct(added)),
    ]
    return [(label, text) for label, text in facts if text]


def _command(commands: Sequence[tuple[str, ...]]) -> str:
    """Return the command of the runs as text. Words that differ between the runs become `…`."""
    if not commands:
        return ""
    if len({len(command) for command in commands}) > 1:
        return shlex.join(commands[0]) + " …"
    return " ".join(shlex.quote(words[0]) if len(set(words)) == 1 else "…" for words in zip(*commands, strict=True))


def _counts(runs: Sequence[Metadata]) -> str:
    complete = sum(run.complete for run in runs)
    left_out = len(runs) - complete
    return f"{complete} complete" + (f", {left_out} left out" if left_out else "")


def _dates(dates: Sequence[str]) -> str:
    days = sorted({date[:10] for date in dates})
    return "" if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _machine(runs: Sequence[Metadata]) -> str:
    hosts: dict[str, str] = {}
    for run in runs:
        for node in run.nodes:
            cores, memory = node.get("cores") or node.get("cpus"), node.get("memory_bytes")
            text = f"{cores} cores" if isinstance(cores, int) else ""
            if isinstance(memory, int):
                text += f"{', ' if text else ''}{memory / 2**30:.0f} GiB"
            hosts[str(node.get("host", "unknown"))] = text
    names = sorted(hosts)
    shown = ", ".join(names[:_MOST_HOSTS]) + (f" … ({len(names)} hosts)" if len(names) > _MOST_HOSTS else "")
    kinds = _distinct(list(hosts.values()))
    return f"{shown} ({kinds})" if kinds else shown


def _distinct(texts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(text.strip() for text in texts if text.strip()))
