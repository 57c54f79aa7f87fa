/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of quipu_count_missed and quipu_enter_missed (inlined.h): a quick one that uses general registers only, and
 * another one for everything else. */
#ifndef QUIPU_MISSED_H
#define QUIPU_MISSED_H

#include "hot.h"
#include "tree.h"

/* Where a link that needs no clock is found by code without a slot. */
static inline void quipu_note_quick(struct quipu_thread *thread, struct quipu_region *region, struct quipu_link *link) {
    thread->table[QUIPU_TABLE_ENTRIES + QUIPU_TABLE_INDEX(link->from->salt, quipu::hash_of(region))] = link;
}

/* Whether the two nodes have one time, or nobody keeps time. */
static inline int quipu_needs_no_clock(const struct quipu_thread *thread, const struct quipu_link *link) {
    return thread->clock == QUIPU_CLOCK_NONE || quipu_charged_alike(link->to, link->from);
}

extern "C" {
/* What these return if the table of the thread has the link; else 0, and nothing happened. */
struct quipu_link *quipu_count_known(struct quipu_region *region, struct quipu_link **slot);
uint64_t quipu_enter_known(struct quipu_region *region, struct quipu_link **slot);
/* Returns 1 if the visit has ended now, else 0. */
uint64_t quipu_exit_known(const struct quipu_visit *visit);
uint64_t quipu_enter_slowly(struct quipu_region *region, struct quipu_link **slot);
/* A link whose `visits` and `counters` the visit is to be added to; never NULL. */
struct quipu_link *quipu_count_slowly(struct quipu_region *region, struct quipu_link **slot);
}

#endif
