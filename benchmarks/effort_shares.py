# SPDX-License-Identifier: Apache-2.0
"""Measure how well counts of a process with a share of n items are predicted.

    make bench-effort_shares [ARGS="--seed 1000"]

The programs of effort_sums sort, search, build trees and fill tables. Each runs as one of p processes with n/p of n
items, at p = 1, 2, 4, 8 and six sizes n, three times each with different random numbers. The counts are modeled as
functions of p and n. They are predicted for 8 times as many processes and 512 times the largest n. A process then has 8
times the largest measured share.

The last line is one JSON object:

- `shares`: the figures of effort_sums.
- `one_process`: the figures of models of the same counts as functions of the share n/p alone. The share determines the
  counts, so a model of p and n is better only by coincidence.
- `ratio`: the share of counts within 1 % in `shares`, divided by the same share in `one_process`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
from effort_sums import PROGRAMS, TIMES_FURTHER, Judged, Layout, Program, built, judge, measure, summary

PROCESSES = (1, 2, 4, 8)
CHOSEN = ("sorts", "searches", "mixed", "other sorts", "other searches", "other trees", "other tables", "passes")


def shared(own: Program) -> Layout:
    """Return the layout of a program with n/p items. All numbers of processes p divide the sizes n."""
    whole = [PROCESSES[-1] * (n // PROCESSES[-1]) for n in own.sizes]
    points = list(product(PROCESSES, whole))
    most, size = TIMES_FURTHER * PROCESSES[-1], TIMES_FURTHER * whole[-1]
    sizes = tuple(n // p for p, n in points)
    return Layout(("p", "n"), np.array(points, dtype=np.float64), sizes, (float(most), float(most * size)), size)


def alone(layout: Layout) -> Layout:
    """Return the layout of the same runs, as functions of the share n/p."""
    sizes = tuple(sorted(set(layout.sizes)))
    points = np.array(sizes, dtype=np.float64)[:, None]
    return Layout(("n",), points, sizes, (float(layout.target_size),), layout.target_size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3, help="runs at each point (default 3)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed of the random numbers (default 0)")
    parser.add_argument("--verbose", action="store_true", help="print the models that miss")
    options = parser.parse_args()
    everything: dict[str, list[Judged]] = {"shares": [], "one_process": []}
    with tempfile.TemporaryDirectory() as folder:
        for own in PROGRAMS:
            if own.name not in CHOSEN:
                continue
            program = built(own, Path(folder))
            for kind, layout in (("shares", shared(own)), ("one_process", alone(shared(own)))):
                found = judge(measure(own, layout, program, options.repetitions, options.seed), options.verbose)
                everything[kind] += found
                print(f"{own.name:16} {kind:12} {summary(found)}", flush=True)
    result = {kind: summary(found) for kind, found in everything.items()}
    near = {kind: sum(own.near for own in found) / len(found) for kind, found in everything.items()}
    print(json.dumps({**result, "ratio": round(near["shares"] / near["one_process"], 3)}))


if __name__ == "__main__":
    main()
