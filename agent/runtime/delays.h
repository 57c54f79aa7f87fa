/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals between synchronizations, and causes of waiting (delays.cpp). */
#ifndef QUIPU_DELAYS_H
#define QUIPU_DELAYS_H

#include "tree.h"

#include <string.h>

namespace quipu {

/* Enlarges a list if it has room for fewer than `wanted` elements. Keeps its elements. Returns false if there is no
 * memory. Call under the lock. */
template <typename T> bool grow(T *&list, uint32_t &room, size_t wanted) {
    if (wanted <= room)
        return true;
    size_t more = room ? room : 64;
    while (more < wanted)
        more *= 2;
    auto *larger = static_cast<T *>(keep(more * sizeof(T)));
    if (!larger)
        return false;
    if (list)
        memcpy(larger, list, room * sizeof(T));
    list = larger;
    room = static_cast<uint32_t>(more);
    return true;
}

/* Like grow(), called without the lock. */
template <typename T> bool has_room(T *&list, uint32_t &room, size_t wanted) {
    if (wanted <= room)
        return true;
    const Locked locked;
    return grow(list, room, wanted);
}

/* Returns the hashes of the call paths of the first `listed` nodes of the thread; null if there is no memory. */
const uint64_t *paths_of(Thread *thread, uint32_t listed);
/* Adds waiting of others at `operation` because of `cause` (null: unknown); both are nodes of this thread. Call under
 * the lock. */
void caused(Thread *thread, const Node *operation, const Node *cause, uint64_t ticks);

/* Writes the charges since the last call. Call under the lock. */
void describe_delays();
/* Updates the metric critical_blocks, which has the index `place` in nodes (critical.cpp). */
void count_critical(uint32_t place);
/* Runs in the child of a fork, which has no charges yet. */
void forget_delays();

} // namespace quipu

#endif
