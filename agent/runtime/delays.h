/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals between synchronizations, and what others waited for (delays.cpp). */
#ifndef QUIPU_DELAYS_H
#define QUIPU_DELAYS_H

#include "tree.h"

#include <string.h>

namespace quipu {

/* Makes room for more elements, with those that are there. Under the lock. False if there is no memory. */
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

/* The same without the lock. */
template <typename T> bool has_room(T *&list, uint32_t &room, size_t wanted) {
    if (wanted <= room)
        return true;
    const Locked locked;
    return grow(list, room, wanted);
}

/* The hashes of the call paths of the first nodes that the thread lists; null if there is no memory. */
const uint64_t *paths_of(Thread *thread, uint32_t listed);
/* Others waited at `operation` because of `cause`, both of this thread; null: without a known cause. Under the lock. */
void caused(Thread *thread, const Node *operation, const Node *cause, uint64_t ticks);

/* Writes what was charged since the last time. Under the lock. */
void describe_delays();
/* Brings the metric critical_blocks, at this place among the metrics of nodes, up to date (critical.cpp). */
void count_critical(uint32_t place);
/* In the child of a fork: it waits for nobody yet. */
void forget_delays();

} // namespace quipu

#endif
