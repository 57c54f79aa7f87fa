// SPDX-License-Identifier: Apache-2.0
// The equation that is solved: -Laplacian u + c u = f, with u chosen first.
#pragma once

#include "vector.hpp"

namespace cg {

// Reaction term c at a point of the whole grid: in [1, 2).
inline double reaction_at(std::uint64_t point) { return 1 + random_at(point, 0); }

// Solution u at a point of the whole grid: in [-1, 1).
inline double solution_at(std::uint64_t point) { return 2 * random_at(point, 1) - 1; }

// Fill the solution u.
void fill_solution(const Partition &partition, Vector<double> &u);

// Fill the right-hand side f from the values of u by position: without matrix and messages, so that it shows whether
// these are right.
void fill_right_hand_side(const Partition &partition, Vector<double> &f);

} // namespace cg
