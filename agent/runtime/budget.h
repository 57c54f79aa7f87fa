/* SPDX-License-Identifier: Apache-2.0 */
/* The budget of time stamps. Two readings of a clock cost more than many functions. If the time stamps of a thread
 * exceed the budget, frequent call paths are no longer timed: their visits read no clock, and their time is added to
 * the caller. Visits and counters of these call paths are still measured. */
#ifndef QUIPU_BUDGET_H
#define QUIPU_BUDGET_H

#include "inlined.h"

/* Returns whether the thread compares costs and budget at the next visit of a call path. */
static inline int is_to_be_reviewed(const struct quipu_node *node) {
    const uint64_t visits = __atomic_load_n(&node->metrics[QUIPU_VISITS], __ATOMIC_RELAXED);
    return __builtin_expect(visits % QUIPU_REVIEW_VISITS == 0 && visits != 0, 0);
}

#ifdef __cplusplus
namespace quipu {

/* Reads QUIPU_TIME_BUDGET. An error in it ends the process. */
void read_budget();
/* Begins the budget, when the clock has been calibrated. pair: duration of the two time stamps of a visit (ns). */
void begin_budget(double pair);
/* Compares costs and budget at the begin of a visit of `node`, on its thread. */
void review(quipu_thread *thread, quipu_node *node);
/* Runs at a flush. Adds the time that call paths had before they lost their time stamps to their callers. */
void settle_time(quipu_thread *thread);
/* Writes into the profile how many call paths lost their time, and when the first and the last did (seconds after the
 * start). Call under the lock. */
void describe_budget();

} // namespace quipu
#endif

#endif
