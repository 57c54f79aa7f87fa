# SPDX-License-Identifier: Apache-2.0
"""Prices of what laws are made of, in bits."""

from __future__ import annotations

PRICES = {
    "size": 1.4,  # N
    "divided size": 5.6,  # N, divided by one extent of the grid
    "size form": 2.3,  # N + c
    "divided form": 6.9,  # N + b·P_d + c
    "joined form": 7.4,  # N·P_d + c: N is the size of a part
    "half form": 7.4,  # N + c/2
    "power form": 7.0,  # N^k + c
    "size root": 7.0,  # N^(1/k)
    "1/size": 9.0,
    "logarithm": 5.0,  # of a size
    "steps": 6.0,  # rounded logarithm of a size
    "levels": 7.0,  # sum over the levels of a multigrid
    "part": 7.9,  # the largest part
    "part logarithm": 6.0,
    "extent": 1.9,  # P_d, and p
    "edges": 1.4,  # P_d - 1, pairs of neighbours
    "extent form": 6.5,  # P_d + c
    "extent root": 7.1,
    "extent logarithm": 7.4,
    "extent steps": 5.6,
    "1/extent": 2.0,
    "sums": 4.6,  # over the dimensions of the grid
    "neighbours": 3.4,  # pairs of ranks that exchange messages
    "ring": 4.0,
    "[p]": 0.3,  # conditions
    "[extent]": 4.0,
    "[size]": 6.0,
    "number": 0.3,  # a bit of a number in a factor
    "factor": 0.5,  # each factor of a product
    "coefficient": 0.3,  # a bit of a coefficient
    "missing": 3.6,  # a dimension of the grid that no factor sums over
    "twice": 0.3,  # one that more than one does
    "alone": 3.3,  # no factor sums over any dimension: one rank does it
}
