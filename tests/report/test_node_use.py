# SPDX-License-Identifier: Apache-2.0
"""What whole nodes used, as the summary of a run, the report and JSON say it."""

from __future__ import annotations

from quipu.agent.archive.metadata import RunMetadata
from quipu.report.node_use import node_totals, node_use
from quipu.report.provenance import provenance


def run(*counters: dict[str, float]) -> RunMetadata:
    return RunMetadata(nodes=tuple({"host": f"n{i}", "counters": own} for i, own in enumerate(counters)))


def test_nodes_add_up_and_runs_have_a_mean() -> None:
    first = run({"energy_package_joules": 10.0, "memory_read_bytes": 2e9}, {"energy_package_joules": 5.0})
    second = run({"energy_package_joules": 17.0, "memory_read_bytes": 4e9})
    assert node_totals(first) == {"energy_package_joules": 15.0, "memory_read_bytes": 2e9}
    assert node_use([first, second]) == ["energy package 16 J", "memory read 3.00 GB"]
    assert ("nodes used", "energy package 16 J, memory read 3.00 GB") in provenance([first, second])


def test_nodes_without_counters_use_nothing_that_is_known() -> None:
    assert node_use([run({}), RunMetadata(nodes=({"host": "old"},)), RunMetadata()]) == []
