# SPDX-License-Identifier: Apache-2.0
"""Define the penalties of the parts of a law, in bits."""

from __future__ import annotations

PRICES = {
    "size": 2.6,  # N
    "divided size": 3.5,  # N, divided by one extent of the grid
    "size form": 2.4,  # N + c
    "divided form": 4.8,  # N + b·P_d + c
    "joined form": 6.6,  # N·P_d + c: N is the size of a part
    "half form": 8.0,  # N + c/2
    "pairs": 6.0,  # 3·N - 2: points and their neighbours
    "power form": 7.0,  # N^k + c
    "size root": 7.0,  # N^(1/k)
    "1/size": 9.0,
    "logarithm": 5.0,  # log2(N)
    "steps": 6.0,  # rounded log2(N)
    "doublings": 12.0,  # 2 to the power of it
    "exponential": 12.0,  # 2^N
    "recursion": 12.0,  # N^log2(c)
    "blocks": 16.0,  # N/b, rounded
    "levels": 7.0,  # sum over the levels of a multigrid
    "part": 7.8,  # size of the largest part
    "part logarithm": 6.0,
    "extent": 0.5,  # P_d, and p
    "hidden": 3.0,  # P_d that is equal at all measured configurations
    "edges": 2.6,  # P_d - 1: pairs of neighbours
    "extent form": 7.3,  # P_d + c
    "extent root": 7.0,
    "extent logarithm": 7.6,
    "extent steps": 6.7,
    "1/extent": 2.2,
    "sums": 4.4,  # sums over the dimensions of the grid
    "neighbours": 2.7,  # pairs of ranks that exchange messages
    "ring": 3.6,
    "[p]": 2.0,  # a condition on p
    "[fewer ranks]": 7.0,  # p < c
    "[part]": 4.0,  # N/p < c or N/p > c
    "[extent]": 4.4,
    "[size]": 6.0,
    "number": 0.5,  # each bit of a number in a factor
    "again": 1.0,  # a linear form that repeats another one, for another size or dimension
    "factor": 0.5,  # each factor of a product
    "coefficient": 0.5,  # each bit of a coefficient
    "missing": 2.8,  # a dimension of the grid that no factor sums over
    "mixed": 3.0,  # a size that is divided along one dimension, and not along another hidden dimension
    "twice": 2.5,  # a dimension of the grid that several factors sum over
    "alone": 2.7,  # no factor sums over any dimension, so one rank does the work
}
