# SPDX-License-Identifier: Apache-2.0
"""Measure memory, files and annotations: overhead, exactness and accuracy of predictions.

    make bench-resources
    benchmarks/resources.py --parts memory_cost,io_exact

The benchmark joins the last lines of its parts (`PARTS`), which can also run separately. The last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

PARTS = ("memory_cost", "io_exact", "annotation_cost")
"""Modules beside this one with a function `results()`."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="names of the parts, with commas between them")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    found: dict[str, Any] = {}
    for part in options.parts.split(","):
        found |= import_module(part).results()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
