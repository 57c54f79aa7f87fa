/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the call paths that hold the heap. A table stores large blocks and a sample of the small blocks by their
 * address (docs/design/memory.md). */
#ifndef QUIPU_HOLDERS_H
#define QUIPU_HOLDERS_H

#include "inlined.h"

#include <stddef.h>
#include <stdint.h>

namespace quipu::memory {

/* One bit for each hash value of an address. The bit is 0 if no stored block has this hash value. */
struct AddressFilter {
    unsigned shift; /* 64 minus the number of bits of the hash value */
    uint64_t *bits;
};

extern const AddressFilter *address_filter; /* null: no block is stored */

/* Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4). Addresses of blocks are multiples of 16. */
inline uint64_t hash_of(const void *block) {
    return (reinterpret_cast<uint64_t>(block) >> 4) * uint64_t{0x9e3779b97f4a7c15};
}

/* Returns false if a block is certainly not stored. */
inline bool may_be_known(const void *block) {
    const AddressFilter *filter = __atomic_load_n(&address_filter, __ATOMIC_ACQUIRE);
    if (!filter)
        return false;
    const uint64_t place = hash_of(block) >> filter->shift;
    return __atomic_load_n(&filter->bits[place / 64], __ATOMIC_RELAXED) >> (place % 64) & 1;
}

/* Stands for the call path of blocks that were allocated before the first region. */
extern quipu_node before_regions;

/* The bytes that one stored block represents. */
struct Share {
    quipu_node *path; /* the call path that holds the block */
    uint64_t bytes;
    bool exact; /* the block represents only itself; false: it also represents small blocks that are not stored */
};

/* Stores a block. If there is no memory, or the lock is not free for too long, the block is not stored. */
void remember(const void *block, const Share &share);
/* Removes a block before it is released, and sets *share. Returns false if the block is not stored. */
bool forget(const void *block, Share *share);

/* Records a new largest heap of `total` bytes: the bytes that each call path holds now become its metric. place: index
 * of the metric in a node; 0: not known yet, so the metrics are not set. */
void note_peak(uint64_t total, uint32_t place);
/* Sets the metrics again by the bytes at the latest recorded peak, so that their sum is `total`, the exact largest
 * heap. Bytes that belong to no call path are added to the metric of `rest`. */
void settle_peak(uint64_t total, uint32_t place, quipu_node *rest);

/* before_fork runs before a fork. after_fork runs after it, in the parent and in the child. */
void before_fork();
void after_fork();

} // namespace quipu::memory

#endif
