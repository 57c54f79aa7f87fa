/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of quipu_count_missed and quipu_enter_missed (inlined.h): a fast part that uses general registers only, and
 * a part for all other cases. */
#ifndef QUIPU_MISSED_H
#define QUIPU_MISSED_H

#include "hot.h"
#include "tree.h"

/* Stores a link that needs no clock in the second table of the thread, which code without slots uses. */
static inline void quipu_note_quick(struct quipu_thread *thread, struct quipu_region *region, struct quipu_link *link) {
    thread->table[QUIPU_TABLE_ENTRIES + QUIPU_TABLE_INDEX(link->from->salt, quipu::hash_of(region))] = link;
}

/* Returns whether the time of both nodes of a link belongs to the same node, or no time is recorded. */
static inline int quipu_needs_no_clock(const struct quipu_thread *thread, const struct quipu_link *link) {
    return thread->clock == QUIPU_CLOCK_NONE || quipu_charged_alike(link->to, link->from);
}

/* Activates the call path of a link without a frame. */
static inline void quipu_follow(struct quipu_thread *thread, const struct quipu_link *link, struct quipu_visit *visit) {
    visit->top = (uint64_t)thread->top;
    visit->back = thread->here;
    visit->here = link->to;
    quipu_increase(link->visits, 1);
    __atomic_store_n(&thread->here, link->to, __ATOMIC_RELAXED);
}

/* Returns the content of a slot that refers to a link (inlined.h); the address of the link if `slot` is NULL. */
static inline uint64_t quipu_place(const struct quipu_link *link, const uint64_t *slot) {
    uint64_t thread_pointer = 0;
#if defined(__x86_64__)
    if (slot != NULL)
        __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
#else
    (void)slot; /* always NULL */
#endif
    return (uint64_t)link - thread_pointer;
}

extern "C" {
/* The functions with `known` in their name return 0 and change nothing if they do not handle the case, for example
 * because the table of the thread does not contain the link. quipu_count_known returns the place of the link. */
uint64_t quipu_count_known(struct quipu_region *region, uint64_t *slot);
/* Begins the visit. Returns the place that contains the address of its counters. */
uint64_t **quipu_enter_known(struct quipu_region *region, uint64_t *slot, struct quipu_visit *visit);
/* Returns 1 if the visit has ended now, else 0. */
uint64_t quipu_exit_known(const struct quipu_visit *visit);
/* Like quipu_enter_known, in all cases; never NULL. */
uint64_t **quipu_enter_slowly(struct quipu_region *region, uint64_t *slot, struct quipu_visit *visit);
/* Like quipu_count_known, in all cases; never 0. */
uint64_t quipu_count_slowly(struct quipu_region *region, uint64_t *slot);
}

#endif
