/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the call paths that hold the heap, from blocks that are known by their address (docs/design/memory.md). */
#ifndef QUIPU_HOLDERS_H
#define QUIPU_HOLDERS_H

#include "inlined.h"

#include <stddef.h>
#include <stdint.h>

namespace quipu::memory {

/* One bit per hash of an address: 0 if no known block has this hash. */
struct AddressFilter {
    unsigned shift; /* 64 minus the number of bits of the hash */
    uint64_t *bits;
};

extern const AddressFilter *address_filter;

/* Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4); blocks lie at multiples of 16. */
inline uint64_t hash_of(const void *block) {
    return (reinterpret_cast<uint64_t>(block) >> 4) * uint64_t{0x9e3779b97f4a7c15};
}

inline bool may_be_known(const void *block) {
    const AddressFilter *filter = __atomic_load_n(&address_filter, __ATOMIC_ACQUIRE);
    if (!filter)
        return false;
    const uint64_t place = hash_of(block) >> filter->shift;
    return __atomic_load_n(&filter->bits[place / 64], __ATOMIC_RELAXED) >> (place % 64) & 1;
}

/* The call path of blocks that were allocated before the first region. */
extern quipu_node before_regions;

/* The bytes that one known block represents. */
struct Share {
    quipu_node *path;
    uint64_t bytes;
    bool exact; /* the block represents only itself, not also small blocks that are not remembered */
};

/* Remembers a block. If there is no memory, or another thread holds the lock too long, the block is not remembered. */
void remember(const void *block, const Share &share);
/* Forgets a block before it is released. Returns false if the block is unknown. */
bool forget(const void *block, Share *share);

/* Records a new largest heap of `total` bytes: the bytes that each call path holds now become its metric at `place`. */
void note_peak(uint64_t total, uint32_t place);
/* Sets the metrics at `place` again as at the latest peak, for a largest heap of `total` bytes. Bytes of no call path
 * belong to `rest`. */
void settle_peak(uint64_t total, uint32_t place, quipu_node *rest);

/* Run before and after a fork, and in its child. */
void before_fork();
void after_fork();

} // namespace quipu::memory

#endif
