/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of time stamps. Two readings of a clock cost more than many functions do. A call path that is entered so
 * often that all time stamps of its thread exceed the budget loses its own: its time is then that of its caller, and
 * entering it reads no clock. It keeps its visits and counters. */
#ifndef QUIPU_BUDGET_H
#define QUIPU_BUDGET_H

#include "inlined.h"

/* Whether the next visit of a call path is one at which its thread compares costs and budget. */
static inline int is_to_be_reviewed(const struct quipu_node *node) {
    const uint64_t visits = __atomic_load_n(&node->metrics[QUIPU_VISITS], __ATOMIC_RELAXED);
    return __builtin_expect(visits % QUIPU_REVIEW_VISITS == 0 && visits != 0, 0);
}

#ifdef __cplusplus
namespace quipu {

/* Reads QUIPU_TIME_BUDGET; a mistake in it ends the process. */
void read_budget();
/* pair: nanoseconds of the time stamps of a visit. When the clock was compared with nanoseconds. */
void begin_budget(double pair);
/* A visit of `node` begins on its thread. */
void review(quipu_thread *thread, quipu_node *node);
/* At a flush: gives to callers what was charged to call paths before they lost their time. */
void settle_time(quipu_thread *thread);
/* Says in the profile how many call paths have no time for that reason, and how many seconds after the start the first
 * and the last one lost it. Under the lock. */
void describe_budget();

} // namespace quipu
#endif

#endif
