/* SPDX-License-Identifier: Apache-2.0 */
/* Which call paths hold the heap: blocks that are known by their address. docs/design/memory.md says how. */
#ifndef QUIPU_HOLDERS_H
#define QUIPU_HOLDERS_H

#include "inlined.h"

#include <stddef.h>
#include <stdint.h>

namespace quipu::memory {

/* A bit for each hash of an address: not set where no block of this hash is known. */
struct AddressFilter {
    unsigned shift; /* of the hash: 64 - bits of its number */
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

/* Stands for the call path of blocks that were allocated before there was one. */
extern quipu_node before_regions;

/* What one known block stands for. */
struct Share {
    quipu_node *path;
    uint64_t bytes;
    bool exact; /* the block itself; else it stands for small blocks, too, that are not known */
};

/* Remembers a block. Never waits for long: without memory, or behind a thread that does not go on, it is forgotten. */
void remember(const void *block, const Share &share);
/* Forgets a block before it is released. False if it is not known. */
bool forget(const void *block, Share *share);

/* The heap has never been as large as now, `total` bytes: what each call path holds goes to its metric at `place`. */
void note_peak(uint64_t total, uint32_t place);
/* The same as when the peak was noted last, for a peak that was `total` bytes. */
void settle_peak(uint64_t total, uint32_t place, quipu_node *rest);

/* Around a fork, and in its child. */
void before_fork();
void after_fork();

} // namespace quipu::memory

#endif
