# SPDX-License-Identifier: Apache-2.0
"""Texts about the overhead of a run, for the head of its views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quipu.modeling.experiment import CallTree, RegionKind
from quipu.modeling.short_names import IN_TEXT, shorten

from .formats.scorep_filter import exclusion
from .measured_run import CostlyPath
from .short_label import short_label
from .text import percent, quantity

_MOST_NOTES = 5

_UNTIMED = (
    "{paths} entered so often{since} that time stamps would exceed the budget; the callers contain their time, and all "
    "counts are complete. QUIPU_TIME_BUDGET=0 measures the time of every call path"
)


def measuring_facts(costs: Mapping[str, float], by_effort: bool = False) -> list[tuple[str, str]]:
    """Return (label, text) pairs about the overhead of all ranks and threads; empty if the run did not record it.

    costs: seconds and numbers of events by name, summed over the run, from its metadata. by_effort: whether the run is
    a simulation whose computation takes the time of its effort.
    """
    if "total" not in costs:
        return []
    parts = [f"{quantity(costs.get('visits', 0.0))} visits at {quantity(costs.get('pair', 0.0), 's')}"]
    parts += [
        f"{words} {quantity(costs[key], 's')}"
        for key, words in (("counters", "counters"), ("probes", "barriers before collectives"))
        if costs.get(key, 0.0) > 0
    ]
    share = f" ({percent(costs['total'] / costs['time'])} of the time)" if costs.get("time", 0.0) > 0 else ""
    share = " of this machine's time, none of it in the simulated time" if by_effort else share
    text = f"about {quantity(costs['total'], 's')}{share}: {', '.join(parts)}"
    if costs.get("agents", 0.0) > 0:
        text += f"; node agents: {quantity(costs['agents'], 's')} of processor time"
    facts = [("measuring", text)]
    if untimed := int(costs.get("untimed", 0.0)):
        paths = "1 call path is" if untimed == 1 else f"{untimed} call paths are"
        facts.append(("untimed", _UNTIMED.format(paths=paths, since=_since(costs))))
    return facts


def _since(costs: Mapping[str, float]) -> str:
    first, last = costs.get("untimed_first"), costs.get("untimed_last")
    if first is None or last is None:
        return ""
    begun, ended = quantity(first, "s"), quantity(last, "s")
    return f" (from {begun} after the start on)" if begun == ended else f" (from {begun} to {ended} after the start on)"


def measuring_notes(tree: CallTree, entries: Sequence[CostlyPath]) -> list[str]:
    """Return warnings about call paths whose time is mostly overhead, and how to reduce the overhead."""
    notes = [_note(tree, entry) for entry in entries[:_MOST_NOTES]]
    if len(entries) > _MOST_NOTES:
        notes.append(
            f"measuring dominates call paths for {len(entries) - _MOST_NOTES} further reasons: see -m time,overhead"
        )
    return notes


def _note(tree: CallTree, entry: CostlyPath) -> str:
    region = tree.region_of(entry.culprit)
    name = shorten(region.display, IN_TEXT)
    others = f" and {entry.paths - 1} other call path{'s' if entry.paths > 2 else ''}" if entry.paths > 1 else ""
    where = f"measuring is {percent(entry.share)} of the time of {short_label(tree, entry.path)}{others}"
    if not entry.hook:
        return (
            f"{where}, because of counters of {name} and visits of small functions below it: let the compiler "
            "inline them (-O2, -flto)"
        )
    if region.kind is RegionKind.MPI:
        return f"{where}, because of calls of {name}, which a filter cannot exclude"
    return f"{where}, because of visits of {name}: exclude them by this rule of a filter: {exclusion(region.name)}"
