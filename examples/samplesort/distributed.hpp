// SPDX-License-Identifier: Apache-2.0
// The steps of the sort that all ranks do together. All of them are collective over MPI_COMM_WORLD.
#pragma once

#include "keys.hpp"

#include <cstddef>

namespace samplesort {

enum { samples_per_rank = 32 };

// Runs received from all ranks, one after the other, and their bounds.
struct Runs {
    std::vector<Key> keys;
    std::vector<std::size_t> bounds;
};

// What the whole input and the whole result must agree in, and what is found out about the result.
struct Verdict {
    std::uint64_t keys;        // over all ranks
    std::uint64_t checksum;    // of the multiset of keys
    std::uint64_t fingerprint; // of the sequence of keys
    std::uint64_t largest;     // keys on the fullest rank
    bool ordered;              // within every rank and from rank to rank
};

// The samples of all ranks, on every rank: one MPI_Allgather of samples_per_rank keys.
std::vector<Key> gather_samples(const std::vector<Key> &samples, int ranks);

// Send bucket b to rank b: one MPI_Alltoall of one int per rank, one MPI_Alltoallv of the keys.
Runs exchange_buckets(const std::vector<Key> &sorted, const std::vector<std::size_t> &bounds, int ranks);

// Examine the distributed sequence `keys`: one MPI_Allgather of three 64-bit numbers (count, first and last key),
// one MPI_Allreduce of three.
Verdict inspect(const std::vector<Key> &keys, int rank, int ranks);

} // namespace samplesort
