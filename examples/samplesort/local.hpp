// SPDX-License-Identifier: Apache-2.0
// The steps of the sort that a rank does alone.
#pragma once

#include "keys.hpp"

#include <cstddef>

namespace samplesort {

// Sort in place: n log n comparisons.
void local_sort(std::vector<Key> &keys);

// `count` keys at even distances from sorted keys.
std::vector<Key> take_samples(const std::vector<Key> &sorted, int count);

// The buckets - 1 keys that divide the samples evenly; sorts the samples.
std::vector<Key> choose_splitters(std::vector<Key> &samples, int buckets);

// Bounds of the buckets in sorted keys: bucket b is [bounds[b], bounds[b + 1]); splitters.size() + 2 bounds.
std::vector<std::size_t> bucket_bounds(const std::vector<Key> &sorted, const std::vector<Key> &splitters);

// Merge sorted runs [bounds[i], bounds[i + 1]) in rounds of pairs: n log2(runs) comparisons at most.
void merge_runs(std::vector<Key> &keys, std::vector<std::size_t> bounds);

} // namespace samplesort
