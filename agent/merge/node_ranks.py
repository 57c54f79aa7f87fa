# SPDX-License-Identifier: Apache-2.0
"""Complete the ranks of each node: the node agent does not record ranks that ended before it saw them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..launch.raw_folder import RankFile


def with_ranks(nodes: Sequence[Mapping[str, Any]], files: Iterable[RankFile]) -> tuple[Mapping[str, Any], ...]:
    """Return the records of the nodes with a record of each rank.

    nodes: records of the node agents. files: the files that each rank wrote at its start. If the command started
    several MPI jobs in succession, the result contains the ranks of the job with the most ranks on the node.
    """
    by_host: dict[str, dict[int, list[RankFile]]] = {}
    for file in files:
        by_host.setdefault(file.host, {}).setdefault(file.job, []).append(file)
    return tuple(_with_ranks(node, by_host.get(str(node.get("host")), {})) for node in nodes)


def _with_ranks(node: Mapping[str, Any], jobs: Mapping[int, Sequence[RankFile]]) -> Mapping[str, Any]:
    if not jobs:
        return node
    most = max(jobs.values(), key=len)
    seen = {record.get("pid"): record for record in node.get("ranks") or () if isinstance(record, dict)}
    records = [
        seen.get(file.pid, {"rank": file.rank, "pid": file.pid, "bound": list(file.affinity)})
        for file in sorted(most, key=lambda file: file.rank)
    ]
    return {**node, "ranks": records}
