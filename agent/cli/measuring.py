"""What measuring a run cost, in words: for the head of its views."""

from __future__ import annotations

from quipu.modeling.experiment import CallTree, RegionKind
from quipu.report.formats.scorep_filter import exclusion
from quipu.report.terminal.text import percent, quantity

from ..archive.run import RunArchive
from ..merge.overhead import Dominated, dominated, overhead_share
from ..profile.overhead import OVERHEAD

_MOST_NOTES = 5


def measuring_facts(archive: RunArchive) -> list[tuple[str, str]]:
    """Return what measuring cost, all ranks and threads together; nothing if the run does not know it."""
    costs = archive.metadata.overhead
    if not costs or "total" not in costs:
        return []
    pairs = f"{quantity(costs.get('visits', 0.0))} visits at {quantity(costs.get('pair', 0.0), 's')}"
    parts = [pairs]
    parts += [
        f"{words} {quantity(costs[key], 's')}"
        for key, words in (("counters", "counters"), ("probes", "barriers before collectives"))
        if costs.get(key, 0.0) > 0
    ]
    share = f" ({percent(overhead_share(costs))} of the time)" if costs.get("time", 0.0) > 0 else ""
    text = f"about {quantity(costs['total'], 's')}{share}: {', '.join(parts)}"
    if costs.get("agents", 0.0) > 0:
        text += f"; node agents beside it: {quantity(costs['agents'], 's')} of processor time"
    return [("measuring", text)]


def measuring_notes(archive: RunArchive) -> list[str]:
    """Return warnings about call paths that measuring dominates, and how to leave out what causes it."""
    found = archive.statistics
    if OVERHEAD.name not in found or "time" not in found or "visits" not in found:
        return []
    time, overhead, visits = (found[name].sum for name in ("time", OVERHEAD.name, "visits"))
    entries = dominated(archive.tree, time, overhead, visits, archive.metadata.overhead)
    notes = [_note(archive.tree, entry) for entry in entries[:_MOST_NOTES]]
    if len(entries) > _MOST_NOTES:
        notes.append(
            f"measuring dominates call paths for {len(entries) - _MOST_NOTES} further reasons: -m time,overhead"
        )
    return notes


def _note(tree: CallTree, entry: Dominated) -> str:
    region = tree.region_of(entry.culprit)
    others = f" and {entry.paths - 1} other call path{'s' if entry.paths > 2 else ''}" if entry.paths > 1 else ""
    where = f"measuring is {percent(entry.share)} of the time of {tree.label(entry.path)}{others}"
    if not entry.hook:
        return (
            f"{where}, for counters of {region.display} and visits of small functions below it: let the compiler "
            "inline them (-O2, -flto)"
        )
    if region.kind is RegionKind.MPI:
        return f"{where}, for calls of {region.display}, which are always counted"
    return f"{where}, for visits of {region.display}; this rule in a filter leaves them out: {exclusion(region.name)}"
