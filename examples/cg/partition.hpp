// SPDX-License-Identifier: Apache-2.0
// The slab of grid planes that one rank owns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cg {

// A periodic grid of n x n x (planes * ranks) points, cut across its last dimension.
struct Partition {
    int rank;
    int ranks;
    std::size_t n;      // points per dimension of a plane
    std::size_t planes; // planes of this rank

    std::size_t plane_points() const { return n * n; }
    std::size_t points() const { return planes * n * n; }
    // Position of this rank's first point in the whole grid.
    std::uint64_t first_point() const { return static_cast<std::uint64_t>(rank) * points(); }
    int below() const { return (rank + ranks - 1) % ranks; }
    int above() const { return (rank + 1) % ranks; }
};

// A number from [0, 1) that depends on the two arguments only: the same data for any number of ranks. The mixing is
// the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
inline double random_at(std::uint64_t point, std::uint64_t stream) {
    std::uint64_t x = point + (stream + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return static_cast<double>(x >> 11) * 0x1p-53;
}

} // namespace cg
