# SPDX-License-Identifier: Apache-2.0
"""Predict the effort of programs that decompose a domain, for more processes and larger sizes than measured.

    make bench-process_grids ARGS="--programs 40 --seed 1"

Each seed draws new programs. A program is a sum of loops over the part of a two- or three-dimensional domain that one
rank has, for strong or weak scaling. The programs have neighbours, edges, pipelines, and sizes that the number of
processes does not divide. Their counts are the counts of all ranks, as in a run. Measured are p = 1, 2, 4 and small n.
Predicted are p = 8 and 16 and larger n.

The benchmark prints a line per kind of program, and as last line one JSON object. Only call paths with at least 1 % of
the effort count. `grids` contains the same figures for different information on the grid.

- `effort_within1`: call paths with an error of at most 1 % (%).
- `effort_covered`: of the other call paths, those inside of their 90 % interval (%).
- `effort_undecided`: of all call paths, those with a larger error whose counts do not decide (%). This means: two sums
  of as many loops as the program has reproduce all measured counts and differ by more than 2 % (undecided_loops.py), or
  the same loops do so on two grids that the measurements do not distinguish.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations, product
from typing import Any

import numpy as np
from quipu.modeling.experiment import FloatArray, Metric
from quipu.modeling.pmnf import Model, NoModel, Options, fit_models
from quipu.modeling.process_grid import ProcessGrid, extents
from quipu.modeling.process_grid import assumed as candidates
from undecided_counts import APART
from undecided_loops import extremes

EFFORT = Metric("blocks", "1", "effort")
MEASURED, TARGETS = (1, 2, 4), (8, 16)
MEASURED_8, TARGETS_32 = (1, 2, 4, 8), (16, 32)


@dataclass(frozen=True)
class Kind:
    """A kind of program: dimensions of the domain and of the grid, and random properties.

    strong: n is the size of the domain. periodic: every rank has all neighbours. ring: the same, where it is not alone
    in that dimension, and known to be so where the grid is known. in_turn: layers are exchanged in one dimension after
    the other, with the ghosts of those before. sizes, far: n measured, predicted.
    """

    name: str
    domain: int
    grid: int
    strong: bool
    periodic: bool
    sizes: tuple[int, ...]
    far: tuple[int, ...]
    rule: str = "balanced"
    ring: bool = False
    in_turn: bool = False


KINDS = (
    Kind("2D, strong", 2, 2, True, False, (16, 24, 32, 48, 64), (128, 256)),
    Kind("2D, strong, periodic", 2, 2, True, True, (16, 24, 32, 48, 64), (128, 256)),
    Kind("2D, strong, uneven", 2, 2, True, False, (15, 22, 33, 46, 61), (125, 250)),
    Kind("3D in a 2D grid, strong", 3, 2, True, False, (12, 16, 24, 32, 40), (64, 96)),
    Kind("3D in a 2D grid, y first", 3, 2, True, False, (12, 16, 24, 32, 40), (64, 96), "balanced, smallest first"),
    Kind("3D in a 2D grid, four sizes", 3, 2, True, False, (12, 18, 26, 40), (64, 102)),
    Kind("3D, strong", 3, 3, True, False, (12, 16, 24, 32, 40), (64, 96)),
    Kind("3D, strong, uneven", 3, 3, True, False, (11, 17, 23, 33, 41), (65, 99)),
    Kind("3D, weak", 3, 3, False, False, (4, 6, 8, 12, 16), (24, 32)),
    Kind("3D, weak, periodic", 3, 3, False, True, (4, 6, 8, 12, 16), (24, 32)),
    Kind("2D, strong, ring", 2, 2, True, False, (16, 24, 32, 48, 64), (128, 256), ring=True),
    Kind("3D, weak, ring", 3, 3, False, False, (4, 6, 8, 12, 16), (24, 32), ring=True),
    Kind("3D, strong, in turn", 3, 3, True, False, (12, 16, 24, 32, 40), (64, 96), in_turn=True),
    Kind("3D, strong, ring, in turn", 3, 3, True, False, (12, 16, 24, 32, 40), (64, 96), ring=True, in_turn=True),
    Kind("3D, weak, ring, in turn", 3, 3, False, False, (4, 6, 8, 12, 16), (24, 32), ring=True, in_turn=True),
)


@dataclass(frozen=True)
class Loop:
    """A loop nest: a coefficient, and the range per dimension, with an offset for each missing neighbour."""

    coefficient: int
    over: tuple[str, ...]

    def counts(self, kind: Kind, n: int, dims: Sequence[int]) -> float:
        """Return the mean over the ranks."""
        result = float(self.coefficient)
        for place, what in enumerate(self.over):
            ranks = int(dims[place]) if place < kind.grid else 1
            result *= _of_ranks(what, kind, n, ranks).mean()
        return result


def _of_ranks(what: str, kind: Kind, n: int, ranks: int) -> FloatArray:
    """Return the trip count of one dimension on the ranks of a row."""
    size = (n // ranks + (np.arange(ranks) < n % ranks)) if kind.strong else np.full(ranks, n)
    own = size.astype(float)
    everywhere = kind.periodic or (kind.ring and ranks > 1)
    before = np.ones(ranks) if everywhere else (np.arange(ranks) > 0).astype(float)
    after = np.ones(ranks) if everywhere else (np.arange(ranks) < ranks - 1).astype(float)
    trips: dict[str, FloatArray] = {
        "cells": own,
        "with ghosts": own + 2.0,
        "with wide ghosts": own + 3.5,  # the range of particles, no whole number of cells
        "inner": own - 2.0 + before + after,
        "interior of the domain": own - (1.0 - before) - (1.0 - after),
        "faces": own + 1.0,
        "one": np.ones(ranks),
        "before": before,
        "neighbours": before + after,
        "edges": 2.0 - before - after,
    }
    return trips[what]


_SIZES = ("cells", "with ghosts", "inner", "interior of the domain", "faces")
_SURFACE = ("before", "neighbours", "neighbours", "edges")
# Coefficients of loops over volumes are below this number, coefficients of other loops below some tenths of it.
_COEFFICIENT = 400


def draw_program(kind: Kind, random: np.random.Generator) -> list[list[Loop]]:
    """Return call paths as sums of loop nests: volumes, surfaces with messages, lines, constants."""
    paths = []
    for _ in range(random.integers(3, 6)):  # kernels
        paths.append([_volume(kind, random) for _ in range(random.integers(1, 4))])
    for _ in range(random.integers(2, 5)):  # exchanges in one dimension or in all dimensions
        coefficient = int(random.integers(1, 40))
        places = range(kind.grid) if random.random() < 0.6 else [int(random.integers(kind.grid))]
        what = str(random.choice(_SURFACE))
        loops = [Loop(coefficient, _at(kind, place, what, "cells")) for place in places]
        if random.random() < 0.5:
            loops += [Loop(int(random.integers(1, 9)), _at(kind, place, what, "one")) for place in places]
        paths.append(loops)
    if kind.in_turn:
        paths += [_in_turn(kind, random) for _ in range(random.integers(1, 3))]
    what = str(random.choice(("neighbours", "before")))  # messages
    paths.append([Loop(1, _at(kind, place, what, "one")) for place in range(kind.grid)])
    paths.append([Loop(int(random.integers(1, 30)), ("one",) * kind.domain)])
    return paths


def _in_turn(kind: Kind, random: np.random.Generator) -> list[Loop]:
    """Return the sent layers, or particles in them: as wide as the part, with its ghosts if there are any."""
    coefficient, order = int(random.integers(1, 40)), random.permutation(kind.domain).tolist()
    ghosts = str(random.choice(("with ghosts", "with wide ghosts")))
    loops = []
    for place, sent in enumerate(order):
        over = [
            "neighbours" if own == sent else ghosts if own in order[:place] else "cells" for own in range(kind.domain)
        ]
        loops.append(Loop(coefficient, tuple(over)))
    return loops


def _volume(kind: Kind, random: np.random.Generator) -> Loop:
    same = str(random.choice(_SIZES))
    over = [same] * kind.domain if random.random() < 0.5 else [str(random.choice(_SIZES)) for _ in range(kind.domain)]
    if random.random() < 0.3:
        over[int(random.integers(kind.domain))] = "one"
    return Loop(int(random.integers(1, _COEFFICIENT)), tuple(over))


def _at(kind: Kind, place: int, what: str, other: str) -> tuple[str, ...]:
    return tuple(what if own == place else other for own in range(kind.domain))


def counts(kind: Kind, program: list[list[Loop]], points: Sequence[tuple[int, int]]) -> FloatArray:
    """Return the counts of all call paths at points (p, n), (paths, points)."""
    result = np.zeros((len(program), len(points)))
    for column, (p, n) in enumerate(points):
        dims = [int(own) for own in extents(kind.rule, p, kind.grid)]
        for row, loops in enumerate(program):
            result[row, column] = sum(loop.counts(kind, n, dims) for loop in loops)
    return result


# Call paths with more loops count as decided. They are exchanges in all dimensions.
_MOST_LOOPS = 3


@lru_cache(maxsize=16)
def all_loops(kind: Kind) -> tuple[Loop, ...]:
    """Return all loops of programs of a kind, with the coefficient 1 and without duplicates."""
    found = {over for over in product((*_SIZES, "one"), repeat=kind.domain) if over.count("one") <= 1}
    for place, what, other in product(range(kind.grid), _SURFACE, ("cells", "one")):
        found.add(_at(kind, place, what, other))
    found.add(("one",) * kind.domain)
    return tuple(Loop(1, over) for over in sorted(found))


def undecided(
    kind: Kind, loops: Sequence[Loop], grids: Sequence[ProcessGrid], measured: Sequence[int], target: tuple[int, int]
) -> tuple[str, str] | None:
    """Return two call paths that agree at all sizes of the measured p and differ at the target, or None.

    The same loops on one of the possible grids, or sums of as many loops on the grid of the kind.
    """
    if (other := _on_another_grid(kind, loops, grids, measured, target)) is not None:
        return other
    if len(loops) > _MOST_LOOPS:
        return None
    # Counts of loops are polynomials in the size, of at most the degree of the domain: two that agree at degree + 1
    # small sizes agree at all sizes. At small sizes, the counts of all ranks together are small whole numbers.
    points = list(product(measured, range(1, kind.domain + 2)))
    columns = _totals(kind, [[loop] for loop in all_loops(kind)], [*points, target])
    # Equal loops count once. Loops that are 0 everywhere are left out.
    distinct, first = np.unique(columns, axis=0, return_index=True)
    distinct, first = distinct[distinct.any(axis=1)], first[distinct.any(axis=1)]
    totals = _totals(kind, [list(loops)], points)[0]
    found = extremes(distinct[:, :-1], distinct[:, -1], totals, len(loops), _COEFFICIENT - 1)
    if found is None or not found.apart:
        return None
    low, high = (
        " + ".join(f"{own} {all_loops(kind)[first[place]].over}" for place, own in sums.items())
        for sums in found.coefficients
    )
    return low, high


def _on_another_grid(
    kind: Kind, loops: Sequence[Loop], grids: Sequence[ProcessGrid], measured: Sequence[int], target: tuple[int, int]
) -> tuple[str, str] | None:
    """Return two grids with equal extents at the measured p, on which the loops differ at the target, or None.

    A dimension that is not divided has one rank; dimensions may be exchanged.
    """

    def whole(rule: str, p: int, dimensions: int) -> list[int]:
        return [*(int(own) for own in extents(rule, p, dimensions)), *[1] * (kind.domain - dimensions)]

    everywhere = replace(kind, grid=kind.domain)
    p, n = target
    own = [whole(kind.rule, p, kind.grid) for p in (*measured, p)]
    value = sum(loop.counts(everywhere, n, own[-1]) for loop in loops)
    for grid in grids:
        for order in permutations(range(kind.domain)) if grid.dimensions <= kind.domain else ():
            turned = [[whole(grid.rule, p, grid.dimensions)[i] for i in order] for p in (*measured, p)]
            there = sum(loop.counts(everywhere, n, turned[-1]) for loop in loops)
            if turned[:-1] == own[:-1] and max(value, there) > APART * min(value, there):
                return f"{value:g} on {own[-1]}", f"{there:g} on {turned[-1]}"
    return None


def _totals(kind: Kind, program: list[list[Loop]], points: Sequence[tuple[int, int]]) -> FloatArray:
    """Return the sums of the counts over all ranks, which are whole numbers."""
    return np.round(counts(kind, program, points) * np.array([p for p, _ in points]))


@dataclass
class Tally:
    """Predictions of call paths with at least 1 % of the effort.

    undecided: those outside 1 % whose value the counts do not determine.
    """

    predicted: int = 0
    within: int = 0
    outside: int = 0
    covered: int = 0
    undecided: int = 0

    def add(self, prediction: Any, true: float) -> None:
        """Count one prediction."""
        self.predicted += 1
        if abs(prediction.value - true) <= 0.01 * abs(true):
            self.within += 1
        else:
            self.outside += 1
            slack = 1e-6 * abs(true)
            self.covered += prediction.lower - slack <= true <= prediction.upper + slack

    def shares(self) -> dict[str, float]:
        """Return percentages: within 1 %; of the others, inside of their interval; undecided ones of all."""
        return {
            "within1": round(100.0 * self.within / max(self.predicted, 1), 1),
            "covered": round(100.0 * self.covered / self.outside, 1) if self.outside else 100.0,
            "undecided": round(100.0 * self.undecided / max(self.predicted, 1), 1),
        }


Grids = Callable[[Kind], tuple[ProcessGrid, ...]]


def known(kind: Kind) -> tuple[ProcessGrid, ...]:
    """Return the grid as recorded in a run that creates a Cartesian communicator."""
    periodic = (kind.periodic or kind.ring,) * kind.grid
    return (ProcessGrid("p", kind.rule, kind.grid, "MPI_Cart_create", periodic),)


def assumed(_kind: Kind) -> tuple[ProcessGrid, ...]:
    """Return the grids that are tried if the grid of a kind is unknown."""
    return candidates("p")


def evaluate(
    kind: Kind, programs: int, seed: int, grids: Grids, measured: Sequence[int], targets: Sequence[int], verbose: bool
) -> Tally:
    """Return the accuracy of predicted counts of this number of programs."""
    random = np.random.default_rng(seed)
    tally = Tally()
    for _ in range(programs):
        program = draw_program(kind, random)
        points = list(product(measured, kind.sizes))
        far = list(product(targets, kind.far))
        values, true = counts(kind, program, points), counts(kind, program, far)
        options = Options(grids=grids(kind))
        models = fit_models(np.array(points, dtype=float), values[:, :, None], EFFORT, ("p", "n"), options)
        share = true / true.sum(axis=0)
        for row, model in enumerate(models):
            for column, point in enumerate(far):
                if share[row, column] < 0.01:
                    continue
                prediction = model.predict(point) if isinstance(model, Model) else _nothing()
                before = tally.within
                tally.add(prediction, float(true[row, column]))
                if tally.within > before:
                    continue
                two = undecided(kind, program[row], options.grids, measured, point)
                tally.undecided += two is not None
                if verbose:
                    text = model.reason if isinstance(model, NoModel) else f"{model} {model.notes}"
                    print(point, program[row], f"true {true[row, column]:g}, {prediction}, {text}")
                    if two is not None:
                        print("   undecided:", *two, sep="\n      ")
    return tally


def _nothing() -> Any:
    return Model(()).predict(())


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=3, help="programs of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="", help="only kinds whose name contains this")
    parser.add_argument("--verbose", action="store_true", help="print what is not within 1 %%")
    arguments = parser.parse_args()
    result: dict[str, Any] = {}
    for name, grids, measured, targets in (
        ("known", known, MEASURED, TARGETS),
        ("assumed", assumed, MEASURED, TARGETS),
        ("known, p up to 8", known, MEASURED_8, TARGETS_32),
    ):
        total = Tally()
        for kind in KINDS:
            if arguments.kind not in kind.name:
                continue
            seed = arguments.seed * 1000 + KINDS.index(kind)
            own = evaluate(kind, arguments.programs, seed, grids, measured, targets, arguments.verbose)
            print(f"{name:18} {kind.name:28} {own.predicted:5} predictions {own.shares()}", flush=True)
            total = replace(
                total,
                predicted=total.predicted + own.predicted,
                within=total.within + own.within,
                outside=total.outside + own.outside,
                covered=total.covered + own.covered,
                undecided=total.undecided + own.undecided,
            )
        result[name] = total.shares()
    first = result["known"]
    print(json.dumps({**{f"effort_{name}": share for name, share in first.items()}, "grids": result}))


if __name__ == "__main__":
    main()
