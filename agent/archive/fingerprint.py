# SPDX-License-Identifier: Apache-2.0
"""The fingerprint of a run: the program, machine and options. All runs of an experiment have equal fingerprints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Run = TypeVar("Run")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\{[A-Za-z_]\w*\}")
_TITLES = {"template": "command"}


@dataclass(frozen=True)
class ProgramIdentity:
    """A measured program or shared library.

    digest: hash of its code and data (`merge.programs`). compiler: text in the file about its compiler, "" if unknown.
    """

    path: str
    digest: str
    compiler: str = ""


@dataclass(frozen=True)
class Fingerprint:
    """The conditions of a run.

    facts: values by name, such as the command without numbers, the command template of a campaign, measuring options,
    machine and MPI library. programs: the measured programs, libraries and scripts by file name.
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, ProgramIdentity] = field(default_factory=dict)


def without_numbers(words: Iterable[str]) -> str:
    """Return a command in which # replaces each number and each {parameter}.

    The result is equal for all configurations of an experiment.
    """
    return " ".join(_NUMBER.sub("#", word) for word in words)


def differences(one: Fingerprint | None, other: Fingerprint | None) -> list[str]:
    """Return a text for each difference between two fingerprints; empty if one of them is None (unknown).

    Facts and programs that only one fingerprint contains are ignored, because each problem size may have a separate
    program.
    """
    if one is None or other is None:
        return []
    found = []
    for name in one.facts.keys() & other.facts.keys():
        if one.facts[name] != other.facts[name]:
            found.append(f"{_TITLES.get(name, name)}: {one.facts[name] or 'none'} or {other.facts[name] or 'none'}")
    for name in one.programs.keys() & other.programs.keys():
        a, b = one.programs[name], other.programs[name]
        if a.digest != b.digest:
            compilers = f", compiler {a.compiler} or {b.compiler}" if a.compiler != b.compiler else ""
            found.append(f"{name}: two builds ({a.digest[:8]} or {b.digest[:8]}{compilers})")
    return sorted(set(found))


def groups(runs: Sequence[Run], fingerprints: Sequence[Fingerprint | None]) -> list[list[Run]]:
    """Return the runs in groups without differences between fingerprints, in the order of their first members.

    fingerprints: of each run. A run without a fingerprint (None) belongs to the first group.
    """
    found: list[tuple[Fingerprint | None, list[Run]]] = []
    for run, fingerprint in zip(runs, fingerprints, strict=True):
        for place, (known, members) in enumerate(found):
            if not differences(known, fingerprint):
                members.append(run)
                if known is None:
                    found[place] = (fingerprint, members)
                break
        else:
            found.append((fingerprint, [run]))
    return [members for _, members in found]
