// SPDX-License-Identifier: Apache-2.0
#include "distributed.hpp"

#include <algorithm>
#include <limits>
#include <mpi.h>
#include <stdexcept>

namespace samplesort {

std::vector<Key> gather_samples(const std::vector<Key> &samples, int ranks) {
    std::vector<Key> all(samples.size() * static_cast<std::size_t>(ranks));
    const int count = static_cast<int>(samples.size());
    MPI_Allgather(samples.data(), count, MPI_UINT64_T, all.data(), count, MPI_UINT64_T, MPI_COMM_WORLD);
    return all;
}

Runs exchange_buckets(const std::vector<Key> &sorted, const std::vector<std::size_t> &bounds, int ranks) {
    const std::size_t size = static_cast<std::size_t>(ranks);
    std::vector<int> send_counts(size), send_offsets(size), receive_counts(size), receive_offsets(size);
    for (std::size_t b = 0; b < size; ++b) {
        send_counts[b] = static_cast<int>(bounds[b + 1] - bounds[b]);
        send_offsets[b] = static_cast<int>(bounds[b]);
    }
    MPI_Alltoall(send_counts.data(), 1, MPI_INT, receive_counts.data(), 1, MPI_INT, MPI_COMM_WORLD);

    Runs runs;
    runs.bounds.assign(1, 0);
    for (std::size_t b = 0; b < size; ++b) {
        const std::size_t end = runs.bounds.back() + static_cast<std::size_t>(receive_counts[b]);
        if (end > static_cast<std::size_t>(std::numeric_limits<int>::max()))
            throw std::length_error("a rank would receive more keys than an int can count");
        receive_offsets[b] = static_cast<int>(runs.bounds.back());
        runs.bounds.push_back(end);
    }
    runs.keys.resize(runs.bounds.back());
    MPI_Alltoallv(sorted.data(), send_counts.data(), send_offsets.data(), MPI_UINT64_T, runs.keys.data(),
                  receive_counts.data(), receive_offsets.data(), MPI_UINT64_T, MPI_COMM_WORLD);
    return runs;
}

Verdict inspect(const std::vector<Key> &keys, int rank, int ranks) {
    // Ends of the rank's part; a rank without keys (first above last) says nothing about the order.
    const Key none[2] = {std::numeric_limits<Key>::max(), 0};
    const std::uint64_t mine[3] = {keys.size(), keys.empty() ? none[0] : keys.front(),
                                   keys.empty() ? none[1] : keys.back()};
    std::vector<std::uint64_t> all(3 * static_cast<std::size_t>(ranks));
    MPI_Allgather(mine, 3, MPI_UINT64_T, all.data(), 3, MPI_UINT64_T, MPI_COMM_WORLD);

    Verdict verdict{0, 0, 0, 0, std::is_sorted(keys.begin(), keys.end())};
    std::uint64_t first = 0;
    Key previous = 0;
    bool boundaries_ordered = true;
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
        const std::uint64_t count = all[3 * r];
        if (r == static_cast<std::size_t>(rank))
            first = verdict.keys;
        verdict.keys += count;
        verdict.largest = std::max(verdict.largest, count);
        if (count > 0) {
            boundaries_ordered = boundaries_ordered && previous <= all[3 * r + 1];
            previous = all[3 * r + 2];
        }
    }

    const std::uint64_t sums[3] = {checksum(keys), fingerprint(keys, first), verdict.ordered ? 0u : 1u};
    std::uint64_t totals[3];
    MPI_Allreduce(sums, totals, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    verdict.checksum = totals[0];
    verdict.fingerprint = totals[1];
    verdict.ordered = totals[2] == 0 && boundaries_ordered;
    return verdict;
}

} // namespace samplesort
