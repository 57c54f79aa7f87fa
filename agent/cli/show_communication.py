# SPDX-License-Identifier: Apache-2.0
"""`quipu show --communication`: show the messages and bytes between each pair of ranks."""

from __future__ import annotations

from pathlib import Path

from quipu.modeling.errors import ModelingError

from .output import layout, show, show_json


def show_communication(folder: Path, as_json: bool) -> None:
    """Show the communication matrix of a run archive. Raises ModelingError if it has none."""
    from quipu.report.communication_views import communication_json, communication_view
    from quipu.report.terminal import head
    from quipu.report.terminal.communication import communication_facts, communication_map, pair_table
    from quipu.report.tree_views import run_facts

    from ..archive.communication_table import read_communication
    from ..archive.read import read_archive

    matrix = read_communication(folder)
    if matrix is None:
        raise ModelingError(
            f"{folder} has no communication matrix. Measure a run whose ranks exchange point-to-point messages or "
            "one-sided transfers and call MPI_Finalize"
        )
    archive = read_archive(folder, values=False)
    view = communication_view(matrix, archive.metadata.ranks, archive.ranks)
    if as_json:
        show_json(communication_json(str(folder), view, matrix))
        return
    room = layout()
    facts = [fact for fact in run_facts(archive, "sum") if fact[0] in ("quality", "command", "point", "run", "ranks")]
    notes = []
    if view.unknown:
        notes.append(
            f"{view.unknown} bytes are not in the map: their receiver is in another program, or a rank has more than "
            "1024 partners"
        )
    title = head(str(folder), [*facts, *communication_facts(view)], notes, room)
    show([title, communication_map(view, room), pair_table(view, room)])
