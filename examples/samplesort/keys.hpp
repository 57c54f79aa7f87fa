// SPDX-License-Identifier: Apache-2.0
// Keys as a function of their position in the whole input: the same data for any number of ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace samplesort {

using Key = std::uint64_t;

// Finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014):
// a bijection that spreads every input bit over the output.
inline std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Keys of positions first .. first + count - 1. With `range` > 0 they lie in [0, range): many equal keys.
std::vector<Key> generate_keys(std::uint64_t first, std::uint64_t count, std::uint64_t range);

// Sum of mix(key) modulo 2^64: does not depend on the order.
std::uint64_t checksum(const std::vector<Key> &keys);

// Sum of key * mix(position) modulo 2^64, positions counted from `first`: depends on the order.
std::uint64_t fingerprint(const std::vector<Key> &keys, std::uint64_t first);

} // namespace samplesort
