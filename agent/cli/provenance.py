"""Where measurements come from, as facts for people: program, machine, dates."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ..archive.metadata import RunMetadata

_MOST_HOSTS = 4


def provenance(runs: Sequence[RunMetadata]) -> list[tuple[str, str]]:
    """Return (label, text) facts about the runs of an experiment; what is not known is left out."""
    facts = [
        ("command", _command([run.command for run in runs])),
        ("runs", _counts(runs)),
        ("measured", _dates([run.started for run in runs if run.started])),
        ("machine", _machine(runs)),
        (
            "launcher",
            _distinct([_launcher(run) for run in runs]),
        ),
        ("added to the environment", _distinct([text for run in runs for text in _settings(run)])),
    ]
    return [(label, text) for label, text in facts if text]


def _command(commands: Sequence[tuple[str, ...]]) -> str:
    """Return the command of all runs; words that differ between them become `…`."""
    if not commands:
        return ""
    if len({len(command) for command in commands}) > 1:
        return shlex.join(commands[0]) + " …"
    return " ".join(shlex.quote(words[0]) if len(set(words)) == 1 else "…" for words in zip(*commands, strict=True))


def _counts(runs: Sequence[RunMetadata]) -> str:
    complete = sum(run.complete for run in runs)
    left_out = len(runs) - complete
    return f"{complete} complete" + (f", {left_out} left out" if left_out else "")


def _dates(dates: Sequence[str]) -> str:
    days = sorted({date[:10] for date in dates})
    return "" if not days else days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _machine(runs: Sequence[RunMetadata]) -> str:
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


def _launcher(run: RunMetadata) -> str:
    return f"{run.launcher.get('family', '')} {run.launcher.get('version', '')}"


def _settings(run: RunMetadata) -> list[str]:
    return [f"{name}={value}" for name, value in run.environment_added.items()]


def _distinct(texts: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(text.strip() for text in texts if text.strip()))
