# SPDX-License-Identifier: Apache-2.0
"""Read the corpus of measured public programs in benchmarks/data/programs/: names, archives and experiments.

Each program has three groups of runs:

- `runs`: three numbers of processes × four or five sizes.
- `counts`: the smallest size with more ranks, up to the number of ranks of the target.
- `target`: one configuration with about twice the largest size.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.experiment import Experiment, FloatArray

DATA = Path(__file__).resolve().parent / "data" / "programs"
Points = Literal["alone", "counts"]
POINTS: tuple[Points, ...] = ("alone", "counts")
"""The input of a modeler: only `runs`, or `runs` and `counts`."""


@dataclass(frozen=True)
class Program:
    """One program of the corpus; `data_dependent`: counts depend on the input or on values, not only on sizes.

    put_aside: not for development; selected by a hash of the name before any model was seen.
    """

    name: str
    data_dependent: bool
    put_aside: bool


def programs(names: Sequence[str] = ()) -> list[Program]:
    """Return the programs with these names, all without names. Raises ValueError for a name that is not there."""
    entries = json.loads((DATA / "programs.json").read_text(encoding="utf-8"))
    known = {own["name"]: Program(own["name"], own["data_dependent"], own["put_aside"]) for own in entries}
    for name in names:
        if name not in known:
            raise ValueError(f"{name}: not in the corpus; there are {', '.join(sorted(known))}")
    return [known[name] for name in names or sorted(known)]


def unpack(program: Program, folder: Path) -> Path:
    """Unpack the archives of a program into a folder; return it."""
    with tarfile.open(DATA / f"{program.name}.tar.xz") as archive:
        # Python 3.11.2 of Debian 12 has no extraction filters. Archives of the project do not need them.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **safe)  # type: ignore[arg-type]
    return folder / program.name


def experiment_of(program: Program, unpacked: Path, points: Points) -> Experiment:
    """Return the experiment of a program for a modeler: only counts, no times."""
    source = unpacked / "runs"
    if points == "counts":
        source = unpacked / "runs-and-counts"
        if not source.exists():
            for group in ("runs", "counts"):
                shutil.copytree(unpacked / group, source, dirs_exist_ok=True)
    whole = load_experiment(source)
    values = {name: own for name, own in whole.values.items() if whole.metrics[name].is_effort}
    return replace(whole, name=program.name, values=values, metrics={name: whole.metrics[name] for name in values})


@dataclass(frozen=True, eq=False)
class Target:
    """The measured target: its point, and for each metric the values of each call path by key, shape (repetitions,)."""

    point: dict[str, float]
    values: dict[str, dict[tuple[str, ...], FloatArray]]
    start_and_end: frozenset[tuple[str, ...]]


def target_of(unpacked: Path) -> Target:
    """Return the target of a program. Raises ValueError if it is more than one configuration."""
    measured = load_experiment(unpacked / "target")
    if measured.configurations != 1:
        raise ValueError(f"{unpacked / 'target'}: has {measured.configurations} configurations, not one")
    tree = measured.tree
    return Target(
        dict(zip(measured.parameters, measured.points[0].tolist(), strict=True)),
        {
            name: {tree.key(path): np.nan_to_num(own[path, 0]) for path in range(len(tree))}
            for name, own in measured.values.items()
            if measured.metrics[name].is_effort
        },
        frozenset(tree.key(path) for path in range(len(tree)) if tree.start_and_end[path]),
    )
