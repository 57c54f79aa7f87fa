# SPDX-License-Identifier: Apache-2.0
"""Numbers that models of process grids and of loop nests were calibrated with: benchmarks/process_grids.py."""

from __future__ import annotations

# Functions are looked at beyond the measurements, at so many times the largest value.
FURTHER = (2.0, 3.0, 4.0, 8.0)

# Lengths of descriptions: of a function of the grid, for each dimension in which it is about neighbours, and if not all
# dimensions are alike; of p and log2(p), which grids make unlikely; of a coefficient that is no whole number, for each
# bit of its odd part, and if it is negative; for each dimension that is not as the domain has it.
GRID_FUNCTION, GRID_EDGE, GRID_ONE_SIDED, GRID_OF_PROCESSES = 1.0, 0.25, 0.5, 2.5
# Of stages of a hypercube, log2(p) and the sum of as many, where nothing is divided in several dimensions: butterflies,
# recursive doubling, bitonic merges.
GRID_OF_STAGES = 1.5
# Neighbours of all ranks, the first and the last of a dimension included: less usual than a domain with edges, unless
# the program says that it is so; then an edge is unusual.
GRID_PERIODIC = 0.5
# Of the steps of a reduction along one dimension, and what is more for as many as there are ranks: extents of 2 and 4
# do not tell them apart.
GRID_OF_EXTENT, GRID_EACH = 2.0, 0.1
# Of p - 1, all other ranks, where there are no dimensions that are divided.
GRID_ALL_OTHERS = 2.0
GRID_FRACTION, GRID_BITS, GRID_NEGATIVE, GRID_VIOLATION = 1.5, 0.2, 1.0, 6.0
# Loops over less than the whole domain that are shared in all dimensions, which edges of the domain are.
GRID_EDGE_OF_DOMAIN = 1.0
# Sums that are longer than the shortest one by less than this have a posterior weight.
GRID_DOUBT = 4.0
# Sums that hardly more numbers of processes than functions confirm come after the model that they would take the place
# of if the description of a coefficient is by this much longer than its own digits. So it is of 4 % of those of
# programs that decompose a domain, and of two thirds of those of an adaptive mesh, whose counts are no such functions.
# Sums of GRID_MOST_FUNCTIONS that no grid confirms need be longer by the second number only.
GRID_LONGER, GRID_LONGER_ALONE = 7.0, 3.0
# Layers of cells that a loop may have more or less than the domain on both sides together; the weight of such doubts
# about extents that were always 1, where that of the shortest sum is 1.
GRID_GHOSTS, GRID_UNSEEN = 2.0, 1.0
# Up to so many numbers of processes, exact functions of them are doubted in programs that have a grid.
GRID_FEW_PROCESSES = 3
# Sums with as many coefficients as points must be so unlikely by luck (-log2 of the probability).
GRID_LEAST_LUCK = 8.0
# So many of the largest counts show which domain is divided.
GRID_OF_DOMAIN = 64
# Functions of a grid in one coefficient; so many sets of functions of each size are tried, the shortest first.
GRID_MOST_FUNCTIONS, GRID_MOST_SETS = 4, 8000
# Dimensions and functions in one coefficient together, if one is of the ranks of a row.
GRID_MOST_ROWS = 5
# Polynomials over all points: terms beside a product of linear functions, powers of the other parameter, and points
# beyond the coefficients.
GRID_MOST_OTHERS, GRID_MOST_POWER, GRID_FREE_POINTS = 2, 3, 2
# Alternatives of a model that are kept, and their weight together at most, so that the median is the shortest.
GRID_ALTERNATIVES, GRID_MOST_DOUBT = 6, 0.45
# Lengths in bits of the descriptions of loop nests: alike in all dimensions or not; what a loop runs over in one: all
# cells, those with a layer of ghosts, faces or the inside, other numbers of layers; once, for neighbours, for the first
# rank or the last, for ranks without neighbours; ends that the domain of the program has not.
NEST_ALIKE, NEST_CELLS, NEST_LIKELY, NEST_LAYERS = 1.0, 2.0, 2.0, 6.0
NEST_ONE, NEST_SOME, NEST_EDGES, NEST_ALONE, NEST_OTHER_ENDS = 2.0, 3.0, 4.0, 4.0, 4.0
# Of a coefficient that is no whole number; sums that are longer by less than this are alternatives.
NEST_FRACTION, NEST_DOUBT = 8.0, 6.0
# Least weight of the ends of an interval. The model is the median of sums that are so likely, as part of the likeliest.
NEST_END, NEST_LIKELY_PART = 0.06, 0.25
# Nests in one sum of the GRID_OF_DOMAIN largest counts and of others, and independent numbers that must be left over.
NEST_MOST, NEST_MOST_SMALL, NEST_FREE = 3, 2, 2
