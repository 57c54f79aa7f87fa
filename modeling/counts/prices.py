# SPDX-License-Identifier: Apache-2.0
"""Define the penalty (bits) of each kind of factor and of each property of a product.

N is a size, P_d is the extent of the process grid in dimension d, and p is the number of ranks. a, b, c, k are small
numbers; they have additional bits (`factors._bits_of`).
"""

from __future__ import annotations

PRICES = {
    "size": 2.6,  # N
    "divided size": 3.5,  # N, divided into parts along dimension d
    "size form": 2.4,  # N + c
    "divided form": 4.8,  # N + b·P_d + c
    "joined form": 6.6,  # N·P_d + c; N is the size of the part of one rank
    "half form": 8.0,  # N + c/2
    "pairs": 6.0,  # 3·N - 2 or 2·N - 1: the points of a row and their neighbours
    "power form": 7.0,  # N^k + c
    "size root": 7.0,  # N^(1/k)
    "1/size": 9.0,
    "logarithm": 5.0,  # log2(N)
    "steps": 6.0,  # rounded log2(N)
    "doublings": 12.0,  # b to the power of a rounded logarithm
    "exponential": 12.0,  # 2^N
    "recursion": 12.0,  # N^log2(c)
    "blocks": 16.0,  # N/b, rounded to a whole number
    "levels": 7.0,  # sum of (m + c)^k over the levels of a multigrid
    "part": 7.8,  # size of the largest (or smallest) part: N/P_d, rounded
    "part logarithm": 6.0,  # log2(N/p)
    "extent": 0.5,  # P_d or p
    "hidden": 3.0,  # P_d that is equal at all measured configurations
    "edges": 2.6,  # P_d - 1: pairs of neighbours
    "extent form": 7.3,  # P_d + c
    "extent root": 7.0,
    "extent logarithm": 7.6,
    "extent steps": 6.7,  # rounded log2(P_d)
    "1/extent": 2.2,
    "sums": 4.4,  # sums over the dimensions of the grid
    "neighbours": 2.7,  # pairs of ranks that exchange messages
    "ring": 3.6,  # pairs of neighbours in a periodic grid
    "[p]": 2.0,  # a condition on p: p > c, or p = 1
    "[fewer ranks]": 7.0,  # p < c
    "[part]": 4.0,  # N/p < c or N/p > c
    "[extent]": 4.4,  # a condition on P_d
    "[size]": 6.0,  # a condition on N
    "number": 0.5,  # for each bit of a number in a factor
    # Penalties of products (`laws.structure_bits`):
    "again": 1.0,  # a linear form that repeats an earlier linear form, for another size or dimension
    "factor": 0.5,  # for each factor of a product
    "coefficient": 0.5,  # for each bit of a coefficient
    "missing": 2.8,  # a dimension of the grid over which no factor is a sum
    "mixed": 3.0,  # a size that is divided along one dimension, but not along a hidden dimension
    "twice": 2.5,  # each factor after the first that is a sum over the same dimension of the grid
    "alone": 2.7,  # no factor is a sum over any dimension: the sum over the ranks does not grow with their number
}
