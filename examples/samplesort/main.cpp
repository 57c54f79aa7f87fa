// SPDX-License-Identifier: Apache-2.0
// samplesort: sort 64-bit keys that are spread over all ranks, by regular sampling.
//
// Every rank starts with the same number of keys (weak scaling). Each sorts its own, all agree on splitters, every
// bucket goes to its rank, which merges what it got. See README.md for the work per region.
#include "distributed.hpp"
#include "local.hpp"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mpi.h>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

using namespace samplesort;

enum { exit_verified = 0, exit_wrong_result = 1, exit_usage = 2 };

constexpr char usage[] = "usage: samplesort KEYS [RANGE [SET]]\n"
                         "  KEYS   keys per rank (32 to 100000000)\n"
                         "  RANGE  keys lie in [0, RANGE) (default 0: all 64 bits)\n"
                         "  SET    which random keys (0 to 1000000, default 0)\n";

struct Arguments {
    std::uint64_t keys = 0;
    std::uint64_t range = 0;
    std::uint64_t set = 0;
};

// Positions of all keys of a set, at most: SET's keys are those of the positions from SET * positions_per_set on.
constexpr std::uint64_t positions_per_set = std::uint64_t{1} << 44;

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::uint64_t parse_number(const char *name, std::string_view text, std::uint64_t low, std::uint64_t high) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
        throw UsageError(std::string("wrong ") + name + " '" + std::string(text) + "'");
    return value;
}

Arguments parse_arguments(int argc, char **argv) {
    if (argc < 2 || argc > 4)
        throw UsageError("wrong number of arguments");
    Arguments arguments;
    arguments.keys = parse_number("KEYS", argv[1], samples_per_rank, 100000000);
    if (argc > 2)
        arguments.range = parse_number("RANGE", argv[2], 0, UINT64_MAX);
    if (argc > 3)
        arguments.set = parse_number("SET", argv[3], 0, 1000000);
    return arguments;
}

// Sort what all ranks hold; afterwards the keys of rank r precede those of rank r + 1.
void sample_sort(std::vector<Key> &keys, int ranks) {
    local_sort(keys);
    std::vector<Key> samples = gather_samples(take_samples(keys, samples_per_rank), ranks);
    const std::vector<Key> splitters = choose_splitters(samples, ranks);
    Runs runs = exchange_buckets(keys, bucket_bounds(keys, splitters), ranks);
    merge_runs(runs.keys, std::move(runs.bounds));
    keys = std::move(runs.keys);
}

int run(const Arguments &arguments, int rank, int ranks) {
    const std::uint64_t first = arguments.set * positions_per_set + static_cast<std::uint64_t>(rank) * arguments.keys;
    std::vector<Key> keys = generate_keys(first, arguments.keys, arguments.range);
    const Verdict before = inspect(keys, rank, ranks);
    sample_sort(keys, ranks);
    const Verdict after = inspect(keys, rank, ranks);

    const bool verified = after.ordered && after.keys == before.keys && after.checksum == before.checksum;
    const double imbalance = static_cast<double>(after.largest) / static_cast<double>(arguments.keys);
    if (rank == 0)
        std::printf("samplesort ranks=%d keys=%" PRIu64 " checksum=%016" PRIx64 " fingerprint=%016" PRIx64
                    " largest/mean=%.6f %s\n",
                    ranks, after.keys, after.checksum, after.fingerprint, imbalance, verified ? "verified" : "WRONG");
    return verified ? exit_verified : exit_wrong_result;
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int status = exit_usage;
    try {
        status = run(parse_arguments(argc, argv), rank, ranks);
    } catch (const UsageError &error) {
        // Every rank reads the same arguments, so all of them end here together.
        if (rank == 0)
            std::fprintf(stderr, "samplesort: %s\n%s", error.what(), usage);
    } catch (const std::exception &error) {
        // Only this rank may have failed: the others must not wait for it.
        std::fprintf(stderr, "samplesort: rank %d: %s\n", rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, exit_wrong_result);
    }
    MPI_Finalize();
    return status;
}
