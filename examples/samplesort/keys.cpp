// SPDX-License-Identifier: Apache-2.0
#include "keys.hpp"

namespace samplesort {

std::vector<Key> generate_keys(std::uint64_t first, std::uint64_t count, std::uint64_t range) {
    std::vector<Key> keys(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        const Key key = mix(first + i);
        keys[i] = range > 0 ? key % range : key;
    }
    return keys;
}

std::uint64_t checksum(const std::vector<Key> &keys) {
    std::uint64_t sum = 0;
    for (const Key key : keys)
        sum += mix(key);
    return sum;
}

std::uint64_t fingerprint(const std::vector<Key> &keys, std::uint64_t first) {
    std::uint64_t sum = 0;
    for (const Key key : keys)
        sum += key * mix(first++);
    return sum;
}

} // namespace samplesort
