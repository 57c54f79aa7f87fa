"""Call paths as text in which no two are the same."""

from __future__ import annotations

from quipu.modeling.experiment import CallTree


def unique_steps(tree: CallTree) -> list[str]:
    """Return the last region of every call path as text that no sibling has.

    Regions that only their linker names tell apart have these in brackets; those that are the same get numbers.
    """
    displays: dict[tuple[int, str], int] = {}
    for node in range(len(tree)):
        key = (int(tree.parent[node]), tree.name(node))
        displays[key] = displays.get(key, 0) + 1
    taken: dict[tuple[int, str], int] = {}
    steps: list[str] = []
    for node in range(len(tree)):
        parent, region = int(tree.parent[node]), tree.region_of(node)
        text = region.display if displays[parent, region.display] == 1 else f"{region.display} [{region.name}]"
        count = taken[parent, text] = taken.get((parent, text), 0) + 1
        steps.append(text if count == 1 else f"{text} #{count}")
    return steps


def unique_labels(tree: CallTree) -> list[str]:
    """Return the call paths as text: their unique steps joined by '->'."""
    labels: list[str] = []
    for node, step in enumerate(unique_steps(tree)):
        parent = int(tree.parent[node])
        labels.append(f"{labels[parent]}->{step}" if parent >= 0 else step)
    return labels
