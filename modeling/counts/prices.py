# SPDX-License-Identifier: Apache-2.0
"""Define the penalties of the parts of a law, in bits.

N is a size, P_d the extent of the process grid in dimension d, p the number of ranks; a, b, c, k are small numbers.
Numbers in a factor have additional bits (`factors._bits_of`).
"""

from __future__ import annotations

PRICES = {
    "size": 2.6,  # N
    "divided size": 3.5,  # N, of which the ranks along dimension d have parts
    "size form": 2.4,  # N + c
    "divided form": 4.8,  # N + b·P_d + c
    "joined form": 6.6,  # N·P_d + c, if N is the size of the part of a rank
    "half form": 8.0,  # N + c/2
    "pairs": 6.0,  # 3·N - 2: points and their neighbours
    "power form": 7.0,  # N^k + c
    "size root": 7.0,  # N^(1/k)
    "1/size": 9.0,
    "logarithm": 5.0,  # log2(N)
    "steps": 6.0,  # rounded log2(N)
    "doublings": 12.0,  # b to the power of a rounded logarithm
    "exponential": 12.0,  # 2^N
    "recursion": 12.0,  # N^log2(c)
    "blocks": 16.0,  # N/b, rounded to a whole number
    "levels": 7.0,  # sum over the levels of a multigrid
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
    # The following apply to products (`laws.structure_bits`).
    "again": 1.0,  # a linear form that repeats another one, for another size or dimension
    "factor": 0.5,  # for each factor of a product
    "coefficient": 0.5,  # for each bit of a coefficient
    "missing": 2.8,  # a dimension of the grid over which no factor is a sum
    "mixed": 3.0,  # a size that is divided along one dimension, but not along a hidden one
    "twice": 2.5,  # a dimension of the grid over which several factors are sums
    "alone": 2.7,  # no factor is a sum over a dimension, so the work of the program does not grow with the ranks
}
