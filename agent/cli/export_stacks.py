# SPDX-License-Identifier: Apache-2.0
"""Export the call tree of a run, or of one configuration, for profile viewers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quipu.modeling.errors import UsageError

from ..load.measurements import is_of_others, is_run, load
from .exported import Exported
from .options import over_ranks_of, parse_assignments, split_names
from .output import json_text, write_own

if TYPE_CHECKING:
    from quipu.report.views import TreeView

SUFFIXES = {
    "folded": ".folded",
    "speedscope": ".speedscope.json",
    "chrome-trace": ".trace.json",
    "pprof": ".pb.gz",
    "hatchet": ".hatchet.json",
    "caliper": ".cali",
}
# Patterns of the first bytes of a file that Quipu exported, by format. Such files may be overwritten. For Caliper see
# `is_of_quipu`.
_OWN = {
    "folded": re.compile(r"(?:[^\n]+ [0-9]+\n)+\Z"),
    "speedscope": re.compile(r'\{"exporter": "quipu"'),
    "chrome-trace": re.compile(r'\{"otherData": \{"exporter": "quipu"'),
    "pprof": re.compile("\x1f.\x08\x08.{6}quipu\x00", re.DOTALL),
    "hatchet": re.compile(r'\[\{"frame": \{"name": '),
}
_OF_ONE_METRIC = ("folded", "chrome-trace")
_OF_RANKS = ("speedscope", "chrome-trace", "caliper")
_UNROUNDED = ("hatchet", "caliper")  # formats for all metrics; the other formats need metrics that can be added up


def export_stacks(
    source: Path,
    chosen: str,
    output: Path | None,
    *,
    metrics: Sequence[str],
    at: Sequence[str],
    ranks: bool,
    over_ranks: str,
    force: bool,
) -> Exported:
    """Write the call tree of a run, or of one configuration of an experiment.

    chosen: the format. output: None: a file with the name of the run or experiment. For the other arguments see the
    options of `quipu export`. Raises UsageError for options that do not fit the format or the source.
    """
    from quipu.report.formats import stacks

    names = split_names(metrics)
    if len(names) > 1 and chosen in _OF_ONE_METRIC:
        raise UsageError(f"--metric {', '.join(names)}: a file of --format {chosen} has one metric")
    if ranks and chosen not in _OF_RANKS:
        raise UsageError(f"--ranks: choose one of --format {', '.join(_OF_RANKS)}; {chosen} contains no single ranks")
    name, view, samples = _view(source, at, ranks, over_ranks)
    weighted = stacks.weighted_stacks(view, names, samples)
    if not names and chosen not in _UNROUNDED:
        weighted = weighted.adding_up(only_first=chosen in _OF_ONE_METRIC)
    writers = {
        "folded": stacks.folded,
        "speedscope": stacks.speedscope,
        "chrome-trace": stacks.chrome_trace,
        "pprof": stacks.pprof,
        "hatchet": stacks.hatchet,
        "caliper": stacks.caliper,
    }
    written = writers[chosen](weighted)
    target = Path(f"{name}{SUFFIXES[chosen]}") if output is None else output
    content = written if isinstance(written, str | bytes) else json_text(written) + "\n"
    write_own(target, content, lambda old: _is_own(chosen, old), f"export to {chosen}", force, [source])
    notes = (
        ["the run was oversubscribed (more ranks than processors); the file does not contain this fact"]
        if view.oversubscribed
        else []
    )
    facts = dict(view.facts)
    combined = ", ".join(facts[key] for key in ("shown", "values") if key in facts)
    shown = f"{len(samples)} ranks, one sample each" if samples else combined
    listed = ", ".join(metric.name for metric in weighted.metrics)
    return Exported(name, target, notes, f": {listed}; {shown}")


def _is_own(chosen: str, old: str) -> bool:
    from quipu.report.formats import stacks

    return stacks.is_of_quipu(old) if chosen == "caliper" else _OWN[chosen].match(old) is not None


def _view(source: Path, at: Sequence[str], ranks: bool, over_ranks: str) -> tuple[str, TreeView, list[str]]:
    """Return the name of the source, its call tree, and the names of the samples: one per rank, or none.

    ranks: whether to export each rank as a separate sample.
    """
    from quipu.report.tree_views import experiment_view, run_tree_view

    over = over_ranks_of(over_ranks)
    if source.is_dir() and not is_of_others(source) and is_run(source):
        if at:
            raise UsageError("--at chooses a configuration of an experiment, but this folder is one run")
        from ..archive.read import read_archive

        run = read_archive(source)
        if ranks and run.values is None:
            raise UsageError(f"--ranks: {source} has statistics over ranks only (see `quipu run --rank-columns`)")
        numbers = sorted(set(run.values.rank.tolist())) if ranks and run.values is not None else []
        return source.resolve().name, run_tree_view(run, over), [f"rank {number}" for number in numbers]
    experiment = load(source, over)
    if ranks:
        raise UsageError(f"--ranks: {source} is an experiment: give the folder of one run in it")
    return experiment.name, experiment_view(experiment, parse_assignments("--at", at)), []
