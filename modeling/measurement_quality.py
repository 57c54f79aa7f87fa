# SPDX-License-Identifier: Apache-2.0
"""Describe the quality of a measurement in one line, which every view shows at its top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .printable import counted


@dataclass(frozen=True)
class RunQuality:
    """Known disturbances of a run.

    - processors: number of processors that the ranks and threads of the run needed at once, and number of available
      processors; None if unknown.
    - others: mean number of processors that other programs used during the run; None if unknown.
    - oversubscribed: the run had more ranks and threads than processors. loaded: other programs used processors that
      the run needed.
    - simulated: number of simulated ranks, 0 for a real run. by_effort: whether simulated time depends only on effort.
    - threads: number per rank.
    """

    processors: tuple[int, int] | None
    others: float | None
    oversubscribed: bool
    loaded: bool
    simulated: int = 0
    by_effort: bool = False
    threads: int = 1


def quality_line(runs: Sequence[RunQuality], scatter: float | None = None) -> str:
    """Return a line on the quality of runs; "" if neither their processors nor the load is known.

    It contains the processors used and available, the load by other programs, the scatter of repetitions, and the
    number of undisturbed runs, as far as they are known. scatter: `Experiment.scatter`; None without repetitions.
    """
    parts = []
    if runs and all(run.simulated for run in runs):
        ranks = max(run.simulated for run in runs)
        parts.append(f"{'up to ' if len(runs) > 1 else ''}{counted(ranks, 'simulated rank', 'simulated ranks')}")
        if all(run.by_effort for run in runs):
            return f"{parts[0]}, time by effort: the same in every run"
    elif known := [(*run.processors, run.threads) for run in runs if run.processors is not None]:
        used, available, threads = max(known, key=lambda entry: entry[0] / max(entry[1], 1))
        of_threads = f" × {threads} threads" if threads > 1 else ""
        of_ranks = counted(used // threads, "rank", "ranks")
        parts.append(f"{of_ranks}{of_threads} on {counted(available, 'processor', 'processors')}")
    loads = [run.others for run in runs if run.others is not None]
    if loads:
        parts.append(f"others used {max(loads):.1f}{' at most' if len(runs) > 1 else ''}")
    if not parts:
        return ""
    if scatter is not None:
        parts.append(f"repetitions scatter by {100 * scatter:.0f} %")
    if runs and runs[0].simulated:
        return ", ".join(parts)
    alone = sum(not (run.loaded or run.oversubscribed) for run in runs)
    each = "thread" if any(run.threads > 1 for run in runs) else "rank"
    if len(runs) > 1:
        parts.append(f"{alone} of {len(runs)} runs with a processor for each {each}")
    elif not alone:
        parts.append("oversubscribed" if runs[0].oversubscribed else "on a loaded machine")
    elif loads:
        parts.append(f"a processor for each {each}")
    return ", ".join(parts)
