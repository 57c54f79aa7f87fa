# SPDX-License-Identifier: Apache-2.0
"""What annotations cost, and how exactly memory and files are counted.

    make bench-resources

Runs the parts below one after the other. The last line is one JSON object with the numbers of all of them; each part is
also a benchmark of its own, whose docstring says what the numbers are.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from annotation_cost import annotation_cost

PARTS: tuple[Callable[[], dict[str, object]], ...] = (annotation_cost,)


def main() -> None:
    numbers: dict[str, object] = {}
    for part in PARTS:
        numbers |= part()
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
