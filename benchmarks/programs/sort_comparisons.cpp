// SPDX-License-Identifier: Apache-2.0
// Comparisons of std::sort in 32 samples of each of p ranks, which are sorted rank by rank: as samplesort sorts them.
//
//     sort_comparisons KEYS RANKS SETS
//
// prints a line of comparisons per rank for each set of KEYS random keys per rank.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr std::size_t samples_per_rank = 32;
long comparisons = 0;

struct Key {
    std::uint64_t value;
    bool operator<(const Key &other) const {
        ++comparisons;
        return value < other.value;
    }
};

std::vector<Key> gathered(std::size_t keys, long ranks, std::mt19937_64 &random) {
    std::vector<Key> samples;
    std::vector<std::uint64_t> own(keys);
    const std::size_t step = keys / samples_per_rank;
    for (long rank = 0; rank < ranks; ++rank) {
        for (std::uint64_t &key : own)
            key = random();
        std::sort(own.begin(), own.end());
        for (std::size_t i = 0; i < samples_per_rank; ++i)
            samples.push_back({own[i * step + step / 2]});
    }
    return samples;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    const auto keys = static_cast<std::size_t>(std::atol(argv[1]));
    const long ranks = std::atol(argv[2]);
    for (long set = 0; set < std::atol(argv[3]); ++set) {
        std::mt19937_64 random(static_cast<std::uint64_t>(set * 65536 + ranks));
        std::vector<Key> samples = gathered(keys, ranks, random);
        comparisons = 0;
        std::sort(samples.begin(), samples.end());
        std::printf("%.6f\n", static_cast<double>(comparisons) / static_cast<double>(ranks));
    }
}
