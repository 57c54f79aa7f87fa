/* SPDX-License-Identifier: Apache-2.0 */
/* hot.h: the fast path of enter, exit and add, for the runtime, the MPI library and the hook of Python. Instrumented
 * code (llvm_pass/hooks.cpp) writes the memory of the runtime in the same way. No other code writes it.
 *
 * A thread writes its state and its nodes without a lock. At its end, the process reads the state of threads
 * that still run. If the thread and the process add time at the same moment, one of the additions may be lost. */
#ifndef QUIPU_HOT_H
#define QUIPU_HOT_H

#include "inlined.h"
#include "quipu_runtime.h"

#include <stddef.h>
#if !defined(__x86_64__) && !defined(__aarch64__)
#include <time.h>
#endif

#define QUIPU_INLINE static inline __attribute__((always_inline))

/* Reads the counter of QUIPU_CLOCK_TSC. */
QUIPU_INLINE uint64_t quipu_cycles(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* Adds to a number that no other thread changes. */
QUIPU_INLINE void quipu_increase(uint64_t *number, uint64_t by) {
    __atomic_store_n(number, __atomic_load_n(number, __ATOMIC_RELAXED) + by, __ATOMIC_RELAXED);
}

/* quipu_add and quipu_max for a node that no other thread changes now. */
QUIPU_INLINE void quipu_add_alone(struct quipu_node *node, enum quipu_metric metric, uint64_t value) {
    quipu_increase(&node->metrics[metric], value);
}

QUIPU_INLINE void quipu_max_alone(struct quipu_node *node, enum quipu_metric metric, uint64_t value) {
    if (__builtin_expect(value > __atomic_load_n(&node->metrics[metric], __ATOMIC_RELAXED), 0))
        __atomic_store_n(&node->metrics[metric], value, __ATOMIC_RELAXED);
}

/* Returns whether the time of both nodes belongs to the same node. Changing from one to the other then needs no clock.
 */
QUIPU_INLINE int quipu_charged_alike(const struct quipu_node *a, const struct quipu_node *b) {
    return __atomic_load_n(&a->charged, __ATOMIC_RELAXED) == __atomic_load_n(&b->charged, __ATOMIC_RELAXED);
}

/* Adds the time since the latest event to the active node. now: a reading of the thread's clock. Does nothing if a
 * measured signal handler has charged a later time since then. */
QUIPU_INLINE void quipu_charge(struct quipu_thread *thread, uint64_t now) {
    const uint64_t last = __atomic_load_n(&thread->last, __ATOMIC_RELAXED);
    if (__builtin_expect(now <= last, 0))
        return;
    quipu_add_alone(__atomic_load_n(&thread->here->charged, __ATOMIC_RELAXED), QUIPU_TIME, now - last);
    __atomic_store_n(&thread->last, now, __ATOMIC_RELAXED);
}

/* Returns the link from the active node to a region; NULL if the region was not entered from there recently. */
QUIPU_INLINE struct quipu_link *quipu_known_link(const struct quipu_thread *thread, const struct quipu_region *region) {
    /* The registering thread writes first the hash and then the id, while other threads read them. */
    const uint64_t hash = __atomic_load_n(&region->hash, __ATOMIC_RELAXED);
    struct quipu_link *link = thread->table[QUIPU_TABLE_INDEX(thread->here->salt, hash)];
    const uint64_t id = __atomic_load_n(&region->id, __ATOMIC_ACQUIRE);
    return __builtin_expect(link->from == thread->here && link->region == id, 1) ? link : NULL;
}

QUIPU_INLINE void quipu_fill(struct quipu_frame *frame, struct quipu_node *node, uint64_t *counters,
                             struct quipu_node *back) {
    __atomic_store_n(&frame->counters, counters, __ATOMIC_RELAXED);
    __atomic_store_n(&frame->back, back, __ATOMIC_RELAXED);
    __atomic_store_n(&frame->node, node, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

QUIPU_INLINE void quipu_activate(struct quipu_thread *thread, struct quipu_frame *top, struct quipu_node *node) {
    __atomic_store_n(&thread->top, top, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->here, node, __ATOMIC_RELAXED);
}

/* Activates a call path in a new frame. The caller has checked that there is a free frame. Until the new frame is
 * innermost, a measured signal handler may use the same memory. The frame is therefore filled twice: before it becomes
 * innermost, and again after that. */
QUIPU_INLINE struct quipu_frame *quipu_push(struct quipu_thread *thread, struct quipu_node *node, uint64_t *counters) {
    struct quipu_frame *frame = thread->top + 1;
    struct quipu_node *back = thread->here;
    quipu_fill(frame, node, counters, back);
    __atomic_store_n(&thread->top, frame, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    quipu_fill(frame, node, counters, back);
    __atomic_store_n(&thread->here, node, __ATOMIC_RELAXED);
    return frame;
}

QUIPU_INLINE struct quipu_frame *quipu_push_link(struct quipu_thread *thread, const struct quipu_link *link) {
    quipu_increase(link->visits, 1);
    return quipu_push(thread, link->to, link->counters);
}

/* Returns whether time stamps of this thread are readings of quipu_cycles. */
QUIPU_INLINE int quipu_counts_cycles(const struct quipu_thread *thread) {
    return __builtin_expect(thread != NULL && thread->clock == QUIPU_CLOCK_TSC, 1);
}

/* The common cases of quipu_enter, quipu_exit and quipu_ticks, without a call. */
QUIPU_INLINE struct quipu_frame *quipu_enter_inline(struct quipu_region *region) {
    struct quipu_thread *thread = quipu_current;
    struct quipu_link *link = quipu_counts_cycles(thread) ? quipu_known_link(thread, region) : NULL;
    if (__builtin_expect(link == NULL || quipu_charged_alike(link->to, thread->here) || thread->top == thread->limit,
                         0))
        return quipu_enter(region);
    quipu_charge(thread, quipu_cycles());
    return quipu_push_link(thread, link);
}

/* now: a reading of quipu_ticks since the frame was entered; 0: read the clock here. */
QUIPU_INLINE void quipu_exit_inline(struct quipu_frame *frame, uint64_t now) {
    struct quipu_thread *thread = quipu_current;
    if (__builtin_expect(!quipu_counts_cycles(thread) || thread->top != frame ||
                             quipu_charged_alike(frame->back, thread->here),
                         0)) {
        quipu_exit(frame);
        return;
    }
    if (now == 0)
        now = quipu_cycles();
    quipu_charge(thread, now);
    quipu_activate(thread, frame - 1, frame->back);
}

QUIPU_INLINE uint64_t quipu_ticks_inline(void) {
    return quipu_counts_cycles(quipu_current) ? quipu_cycles() : quipu_ticks();
}

/* Returns quipu_ticks at the latest event of this thread; directly after entering a region, the time of entering. */
QUIPU_INLINE uint64_t quipu_latest_ticks(void) { return quipu_current == NULL ? 0 : quipu_current->last; }

#endif
