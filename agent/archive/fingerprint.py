# SPDX-License-Identifier: Apache-2.0
"""The fingerprint of a run: what was measured, and how. All runs of an experiment have the same."""

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
    """A program or a shared library that was measured. digest: of its code and data; compiler: as its file says."""

    path: str
    digest: str
    compiler: str = ""


@dataclass(frozen=True)
class Fingerprint:
    """What identifies a run.

    facts: by name: the command without numbers, the template of a campaign, measuring options, machine, MPI.
    programs: by file name, as far as they were found.
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    programs: Mapping[str, ProgramIdentity] = field(default_factory=dict)


def without_numbers(words: Iterable[str]) -> str:
    """Return a command without its numbers and {parameters}: equal for all configurations of an experiment."""
    return " ".join(_NUMBER.sub("#", word) for word in words)


def differences(one: Fingerprint | None, other: Fingerprint | None) -> list[str]:
    """Return in words how two fingerprints differ; empty if they do not, as far as both know.

    A fact or a program that only one of them has says nothing: there may be one program for each problem size.
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
    """Return the runs in groups of equal fingerprints, in order of their first members. Unknown ones fit anywhere."""
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
