# SPDX-License-Identifier: Apache-2.0
"""The two sides of a comparison. A side is an experiment, a run or a baseline, with the effort of its source lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from quipu.modeling.errors import MeasurementError, UsageError
from quipu.modeling.experiment import CallTree, Experiment, FloatArray, IntArray, Region
from quipu.modeling.line_changes import LineEffort

from ..archive.class_tables import read_source
from ..archive.fingerprint import Fingerprint, groups
from ..archive.read import read_archive
from ..archive.run import SourceEffort
from ..merge.experiment import find_runs
from ..merge.unify import unify_trees

Key = tuple[str, ...]
Point = tuple[float, ...]


@dataclass(frozen=True)
class Function:
    """A function in the source whose effort belongs to a call path, possibly because it was inlined there.

    path: linker names of the regions of the call path, from the root. display, name: display name and linker name of
    the function. file: its source file.
    """

    path: Key
    display: str
    name: str
    file: str


@dataclass(frozen=True, eq=False)
class Lines:
    """Effort of the source lines at one configuration, mean over ranks, grouped by function.

    metrics: names of the metrics. functions: for each function, line number → values of the metrics, in this order.
    """

    metrics: tuple[str, ...]
    functions: Mapping[Function, LineEffort]


@dataclass(frozen=True, eq=False)
class RunLines:
    """The stored effort of the source lines of one run, summed over ranks.

    keys: index of a call path → linker names of its regions from the root. ranks: number of ranks.
    """

    keys: Mapping[int, Key]
    ranks: int
    effort: SourceEffort

    def lines(self) -> Lines:
        """Return the effort as a mean over ranks, grouped by function."""
        metrics = tuple(self.effort.metrics)
        values = np.stack([self.effort.metrics[name] for name in metrics], axis=1) / max(1, self.ranks)
        found: dict[Function, dict[int, tuple[float, ...]]] = defaultdict(dict)
        for path, number, row in zip(self.effort.callpath.tolist(), self.effort.line.tolist(), values, strict=True):
            line = self.effort.lines[number]
            known = found[Function(self.keys[path], line.function, line.name, line.file)]
            known[line.line] = tuple((np.array(known.get(line.line, np.zeros(len(metrics)))) + row).tolist())
        return Lines(metrics, found)


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a comparison.

    folder: the folder of its runs; None for a baseline. kept: effort of the source lines by configuration; only used
    for a baseline.
    """

    title: str
    experiment: Experiment
    folder: Path | None = None
    kept: Mapping[Point, RunLines] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> Fingerprint | None:
        """Return the common fingerprint of the complete runs; None if unknown, or if it differs between runs."""
        if self.folder is None:
            return None
        known = [run.metadata.fingerprint for run in find_runs(self.folder) if run.metadata.complete]
        return known[0] if known and len(groups(known, known)) == 1 else None

    def run_lines(self, point: Point) -> RunLines | None:
        """Return the effort of source lines of the first complete run at a configuration that has it; None if none."""
        if self.folder is None:
            return self.kept.get(point)
        names = self.experiment.parameters
        for run in find_runs(self.folder):
            if tuple(float(run.metadata.parameters[name]) for name in names) == point and run.metadata.complete:
                archive = read_archive(run.path, values=False)
                effort = read_source(run.path, archive.metadata, archive.tree)
                if effort is not None:
                    keys = {path: archive.tree.key(path) for path in np.unique(effort.callpath).tolist()}
                    return RunLines(keys, archive.metadata.ranks, effort)
        return None


@dataclass(frozen=True, eq=False)
class Pair:
    """Two sides, brought to the same call paths and configurations.

    - before, after: the experiments, which share one tree object.
    - points: for each common configuration, its point on each side.
    - old_names: for regions with another linker name on each side, linker name before → linker name after.
    - notes: texts for the user about what was not compared.
    """

    before: Experiment
    after: Experiment
    sides: tuple[Side, Side]
    points: tuple[tuple[Point, Point], ...]
    old_names: Mapping[str, str]
    notes: tuple[str, ...] = ()


def paired(before: Side, after: Side) -> Pair:
    """Return both sides with the call paths of both, at the configurations that both have.

    Two regions are the same if their linker names are equal. If not, they are the same if their display names are
    equal, because compilers mangle names differently. Two single runs are paired even if their configurations differ.
    Raises UsageError if the parameters differ, MeasurementError without a common configuration.
    """
    old, new = before.experiment, after.experiment
    if set(old.parameters) != set(new.parameters):
        words = (", ".join(one.parameters) or "none" for one in (old, new))
        raise UsageError(f"{before.title} and {after.title} have different parameters: {' and '.join(words)}")
    notes = []
    order = [old.parameters.index(name) for name in new.parameters]
    places = {tuple(row): place for place, row in enumerate(old.points[:, order].tolist())}
    common = [
        (places[point], place) for place, row in enumerate(new.points.tolist()) if (point := tuple(row)) in places
    ]
    if not common and old.configurations == new.configurations == 1:
        common = [(0, 0)]
        notes.append("the two runs have different configurations, which may cause the differences")
    if not common:
        raise MeasurementError(f"{before.title} and {after.title} have no configuration in common")
    left = old.configurations - len(common), new.configurations - len(common)
    for side, count in zip((before, after), left, strict=True):
        if count:
            notes.append(
                f"{count} configuration{'s' * (count > 1)} of {side.title} not compared: the "
                "other does not contain them"
            )
    names = _renamed(old.tree, new.tree)
    if names:
        notes.append(f"{len(names)} regions have other linker names and are compared by their displayed ones")
    renamed = tuple(replace(region, name=names.get(region.name, region.name)) for region in old.tree.regions)
    tree, (theirs, mine) = unify_trees([new.tree, CallTree(renamed, old.tree.region, old.tree.parent)])
    shared = new.points[[b for _, b in common]]
    points = tuple((tuple(old.points[a].tolist()), tuple(new.points[b].tolist())) for a, b in common)
    return Pair(
        _onto(old, tree, mine, [a for a, _ in common], new, shared),
        _onto(new, tree, theirs, [b for _, b in common], new, shared),
        (before, after),
        points,
        names,
        tuple(notes),
    )


def _renamed(old: CallTree, new: CallTree) -> dict[str, str]:
    """Return a map from linker names before to linker names after, for regions with equal display names only.

    Display names that several of these regions have are left out.
    """
    mine, theirs = ({region.name: region for region in tree.regions} for tree in (old, new))
    gone = _by_display([region for name, region in mine.items() if name not in theirs])
    come = _by_display([region for name, region in theirs.items() if name not in mine])
    return {gone[display].name: region.name for display, region in come.items() if display in gone}


def _by_display(regions: list[Region]) -> dict[str, Region]:
    counts = Counter(region.display for region in regions)
    return {region.display: region for region in regions if counts[region.display] == 1}


def _onto(
    experiment: Experiment, tree: CallTree, paths: IntArray, places: list[int], like: Experiment, points: FloatArray
) -> Experiment:
    """Return an experiment with the call paths of another tree and a selection of its configurations.

    paths: index in `tree` of each call path. places: the selected configurations; points: their new points. like: the
    experiment whose order of parameters is used. Call paths that the experiment does not contain have the value 0.
    """

    def moved(measured: dict[str, FloatArray]) -> dict[str, FloatArray]:
        found = {}
        for name, old in measured.items():
            column = np.full((len(tree), len(places), old.shape[2]), np.nan)
            column[:, ~np.isnan(old[:, places]).all(axis=0)] = 0.0
            column[paths] = old[:, places]
            found[name] = column
        return found

    flags = None if experiment.oversubscribed is None else experiment.oversubscribed[places]
    return replace(
        experiment,
        parameters=like.parameters,
        points=points,
        tree=tree,
        values=moved(experiment.values),
        oversubscribed=flags,
        loaded=None if experiment.loaded is None else experiment.loaded[places],
        excess=moved(experiment.excess),
        largest=moved(experiment.largest),
        rank_times=None if experiment.rank_times is None else experiment.rank_times.chosen(places),
        timed=None,
    )
