# SPDX-License-Identifier: Apache-2.0
"""Constants of models of process grids and of loop nests: benchmarks/process_grids.py."""

from __future__ import annotations

# Functions are compared beyond the measurements, at this multiple of the largest value.
FURTHER = (2.0, 3.0, 4.0, 8.0)

# Lengths of descriptions: of a function of the grid, for each dimension with neighbours in it, and if not all
# dimensions are alike; of p and log2(p), which grids make unlikely; of a coefficient that is no whole number, for each
# bit of its odd part, and if it is negative; for each dimension that differs from the domain.
GRID_FUNCTION, GRID_EDGE, GRID_ONE_SIDED, GRID_OF_PROCESSES = 1.0, 0.25, 0.5, 2.5
# Of stages of a hypercube, log2(p) and sums of as many terms, if nothing is divided in several dimensions: butterflies,
# recursive doubling, bitonic merges.
GRID_OF_STAGES = 1.5
# Of neighbours of all ranks, including the first and the last of a dimension: less usual than a domain with edges,
# unless the program declares a periodic dimension, in which edges are unusual.
GRID_PERIODIC = 0.5
# Of the steps of a reduction along one dimension, and the addition for as many steps as ranks, because extents of 2 and
# 4 do not distinguish them.
GRID_OF_EXTENT, GRID_EACH = 2.0, 0.1
# Of p - 1, all other ranks, if no dimension is divided.
GRID_ALL_OTHERS = 2.0
GRID_FRACTION, GRID_BITS, GRID_NEGATIVE, GRID_VIOLATION = 1.5, 0.2, 1.0, 6.0
# Of loops over less than the whole domain that are shared in all dimensions, as edges of the domain are.
GRID_EDGE_OF_DOMAIN = 1.0
# Sums that exceed the shortest length by less than this have a posterior weight.
GRID_DOUBT = 4.0
# If hardly more numbers of processes than functions confirm a sum, it comes after the former model if the description
# of a coefficient exceeds the coefficient's digits by this length. This applies to 4 % of the sums of programs that
# decompose a domain, and to two thirds of the sums of an adaptive mesh, whose counts are no such functions. For sums of
# GRID_MOST_FUNCTIONS that no grid confirms, the second number applies.
GRID_LONGER, GRID_LONGER_ALONE = 7.0, 3.0
# Layers of cells that a loop may have more or less than the domain, on both sides together; the weight of such an
# uncertainty for extents that were always 1, relative to the shortest sum.
GRID_GHOSTS, GRID_UNSEEN = 2.0, 1.0
# With up to this number of numbers of processes, exact functions of them are uncertain in programs with a grid.
GRID_FEW_PROCESSES = 3
# Necessary improbability of a coincidence (-log2 of the probability) for sums with as many coefficients as points.
GRID_LEAST_LUCK = 8.0
# Number of the largest counts that determine which domain is divided.
GRID_OF_DOMAIN = 64
# Functions of a grid in one coefficient; number of tried sets of functions of each size, the shortest first.
GRID_MOST_FUNCTIONS, GRID_MOST_SETS = 4, 8000
# Dimensions and functions in one coefficient together, if one of them depends on the ranks of a row.
GRID_MOST_ROWS = 5
# Polynomials over all points: terms in addition to a product of linear functions, powers of the other parameter, and
# points beyond the coefficients.
GRID_MOST_OTHERS, GRID_MOST_POWER, GRID_FREE_POINTS = 2, 3, 2
# Number of alternatives of a model, and largest total weight, so that the median is the shortest.
GRID_ALTERNATIVES, GRID_MOST_DOUBT = 6, 0.45
# Lengths in bits of the descriptions of loop nests: equal in all dimensions or not; the range of a loop in one
# dimension: all cells, cells with a layer of ghosts, faces or the inside, other numbers of layers; once, for
# neighbours, for the first rank or the last, for ranks without neighbours; periodic or open ends that differ from the
# domain of the program.
NEST_ALIKE, NEST_CELLS, NEST_LIKELY, NEST_LAYERS = 1.0, 2.0, 2.0, 6.0
NEST_ONE, NEST_SOME, NEST_EDGES, NEST_ALONE, NEST_OTHER_ENDS = 2.0, 3.0, 4.0, 4.0, 4.0
# Of a coefficient that is no whole number; sums that are longer by less than this are alternatives.
NEST_FRACTION, NEST_DOUBT = 8.0, 6.0
# Smallest weight of the ends of an interval. The model is the median of sums with at least this part of the largest
# probability.
NEST_END, NEST_LIKELY_PART = 0.06, 0.25
# Nests in one sum, for the GRID_OF_DOMAIN largest counts and for others, and necessary degrees of freedom.
NEST_MOST, NEST_MOST_SMALL, NEST_FREE = 3, 2, 2
