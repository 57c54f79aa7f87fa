# SPDX-License-Identifier: Apache-2.0
"""`quipu show --iterations NAME`: show time and effort of the iterations of a phase in the course of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quipu.modeling.errors import ModelingError

from .output import layout, show, show_json


def show_iterations(folder: Path, phase: str, metrics: Sequence[str], as_json: bool) -> None:
    """Show the iterations of the phase `phase` of a run archive. Raises ModelingError if the run has no phases."""
    from quipu.report.iteration_views import iterations_json, iterations_view
    from quipu.report.terminal import head
    from quipu.report.terminal.iterations import iteration_facts, iteration_table
    from quipu.report.tree_views import run_facts

    from ..archive.iteration_table import read_iterations
    from ..archive.read import read_archive

    table = read_iterations(folder)
    if table is None:
        raise ModelingError(
            f"{folder} has no iterations: its program marks no phases (QUIPU_PHASE_BEGIN), or was killed"
        )
    view = iterations_view(table, phase, metrics)
    if as_json:
        show_json(iterations_json(str(folder), view))
        return
    room = layout()
    archive = read_archive(folder, values=False)
    facts = [fact for fact in run_facts(archive, "mean") if fact[0] in ("quality", "command", "point", "run", "ranks")]
    notes = ["values are of one iteration, inclusive, the mean over the ranks"]
    show([head(str(folder), [*facts, *iteration_facts(view)], notes, room), iteration_table(view, room)])
