// SPDX-License-Identifier: Apache-2.0
#include "local.hpp"

#include <algorithm>
#include <utility>

namespace samplesort {

void local_sort(std::vector<Key> &keys) { std::sort(keys.begin(), keys.end()); }

std::vector<Key> take_samples(const std::vector<Key> &sorted, int count) {
    std::vector<Key> samples(static_cast<std::size_t>(count));
    const std::size_t step = sorted.size() / samples.size();
    for (std::size_t i = 0; i < samples.size(); ++i)
        samples[i] = sorted[i * step + step / 2];
    return samples;
}

std::vector<Key> choose_splitters(std::vector<Key> &samples, int buckets) {
    std::sort(samples.begin(), samples.end());
    std::vector<Key> splitters;
    splitters.reserve(static_cast<std::size_t>(buckets) - 1);
    for (std::size_t b = 1; b < static_cast<std::size_t>(buckets); ++b)
        splitters.push_back(samples[b * samples.size() / static_cast<std::size_t>(buckets)]);
    return splitters;
}

std::vector<std::size_t> bucket_bounds(const std::vector<Key> &sorted, const std::vector<Key> &splitters) {
    std::vector<std::size_t> bounds;
    bounds.reserve(splitters.size() + 2);
    bounds.push_back(0);
    for (const Key splitter : splitters) {
        const auto bound = std::lower_bound(sorted.begin(), sorted.end(), splitter);
        bounds.push_back(static_cast<std::size_t>(bound - sorted.begin()));
    }
    bounds.push_back(sorted.size());
    return bounds;
}

void merge_runs(std::vector<Key> &keys, std::vector<std::size_t> bounds) {
    std::vector<Key> merged(keys.size());
    while (bounds.size() > 2) {
        std::vector<std::size_t> next{0};
        auto out = merged.begin();
        for (std::size_t run = 0; run + 1 < bounds.size(); run += 2) {
            const std::size_t middle = bounds[run + 1];
            const std::size_t end = run + 2 < bounds.size() ? bounds[run + 2] : middle;
            const Key *data = keys.data();
            out = std::merge(data + bounds[run], data + middle, data + middle, data + end, out);
            next.push_back(end);
        }
        std::swap(keys, merged);
        bounds = std::move(next);
    }
}

} // namespace samplesort
