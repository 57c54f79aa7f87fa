# SPDX-License-Identifier: Apache-2.0
"""Write folded stacks, one per line, for flamegraph.pl, inferno and speedscope."""

from __future__ import annotations

from quipu.modeling.printable import one_line

from .weighted import WeightedStacks


def folded(stacks: WeightedStacks) -> str:
    """Return the exclusive values of the first metric and sample as lines such as `main;solve;MPI_Allreduce 1234`.

    A semicolon in a name becomes a colon. Line breaks and characters that control a terminal become question marks.
    """
    steps = [one_line(step).replace(";", ":").strip() or "?" for step in stacks.tree.unique_steps]
    lines: list[str] = []
    texts: list[str] = []
    for node, weight in enumerate(stacks.weights(stacks.metrics[0], stacks.samples[0])):
        parent = int(stacks.tree.parent[node])
        texts.append(f"{texts[parent]};{steps[node]}" if parent >= 0 else steps[node])
        if weight:
            lines.append(f"{texts[node]} {weight}\n")
    return "".join(lines)
