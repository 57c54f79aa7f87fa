# SPDX-License-Identifier: Apache-2.0
"""The numbers of ranks and the sizes of the count-only runs of a campaign with a target.

A size is the tuple of the values of all parameters except the number of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from quipu.modeling.parameter_names import RANK_NAMES

from ..file import PLACEHOLDER, Campaign
from ..points import Point

_RANK_OPTIONS = ("-n", "-np", "--np", "--ntasks")
_BEYOND = 2
"""Number of additional sizes beyond the declared ones."""


def ranks_parameter(campaign: Campaign) -> str | None:
    """Return the name of the parameter that is the number of ranks; None if none is found.

    The parameter is, in this order: `ranks` of the campaign, the value of an option such as -n in the command, the
    parameter of [grid], or a parameter with a usual name (`RANK_NAMES`).
    """
    words = list(campaign.command)
    texts = [campaign.ranks, *(after for word, after in pairwise(words) if word in _RANK_OPTIONS)]
    for text in texts:
        if (found := PLACEHOLDER.fullmatch(text)) is not None and found.group(1) in campaign.parameters:
            return found.group(1)
    named = [campaign.grid.parameter] if campaign.grid is not None else []
    return next((name for name in (*named, *RANK_NAMES) if name in campaign.parameters), None)


def sizes(campaign: Campaign, ranks: str) -> tuple[list[Point], int]:
    """Return the sizes, smallest first, and how many of them the campaign declares.

    ranks: the name of the parameter that is the number of ranks. From one size to the next, each parameter takes its
    next declared value, and keeps its largest value at the end. If this makes combinations that the campaign does not
    declare, the declared sizes are returned instead, ordered by the product of their values. Up to `_BEYOND` larger
    sizes follow. They are tried if the program cannot run the declared sizes with some number of ranks.
    """
    place = campaign.parameters.index(ranks)
    declared = {(*point[:place], *point[place + 1 :]) for point in campaign.points}
    columns = [sorted(set(column)) for column in zip(*declared, strict=True)]
    steps = max((len(column) for column in columns), default=1)
    ladder = [tuple(column[min(step, len(column) - 1)] for column in columns) for step in range(steps)]
    if not set(ladder) <= declared:  # the file lists single points, not all combinations
        ladder = sorted(declared, key=lambda one: (math.prod(max(value, 1e-300) for value in one), one))
    known = len(ladder)
    for _ in range(_BEYOND):
        larger = tuple(_next(column, one) for column, one in zip(columns, ladder[-1], strict=True))
        if larger == ladder[-1]:
            break
        ladder.append(larger)
    return ladder, known


def point_of(campaign: Campaign, ranks: str, number: int, others: Point) -> Point:
    """Return the point with `number` ranks and the size `others`. ranks: the name of the parameter of the ranks."""
    place = campaign.parameters.index(ranks)
    return (*others[:place], number, *others[place:])


def _next(declared: Sequence[float], value: float) -> float:
    """Return `value` times the ratio of the last two declared values, rounded up if all declared values are integers.

    Returns `value` itself without two declared values, or if the last but one is not positive.
    """
    if len(declared) < 2 or declared[-2] <= 0:
        return value
    larger = value * declared[-1] / declared[-2]
    return math.ceil(larger) if all(float(one).is_integer() for one in declared) else larger
