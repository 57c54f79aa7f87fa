# SPDX-License-Identifier: Apache-2.0
"""Files of Python: text, bytes, and one file per step."""

import json
import os
from pathlib import Path


def write(steps: int) -> None:
    for step in range(steps):
        with Path(f"step-{step}.json").open("w", encoding="utf-8") as file:
            json.dump({"step": step, "values": list(range(1000))}, file)


def read(steps: int) -> int:
    total = 0
    for step in range(steps):
        with Path(f"step-{step}.json").open(encoding="utf-8") as file:
            total += sum(json.load(file)["values"])
    return total


def blocks() -> None:
    with Path("blocks.raw").open("wb", buffering=0) as file:
        for size in range(1, 50):
            file.write(os.urandom(size * 100))


write(12)
print(read(12))
blocks()
