/* SPDX-License-Identifier: Apache-2.0 */
/* annotations.h: regions that the program names at run time (quipu/region.h, and the interfaces of other tools). */
#ifndef QUIPU_ANNOTATIONS_H
#define QUIPU_ANNOTATIONS_H

#include "tree.h"

namespace quipu {

/* An open region of a thread. */
struct Mark {
    quipu_region *region;
    Frame *frame;
    Node *at;         /* node of its call path */
    uint64_t *visits; /* visits of its call path */
    Node *function;   /* node of the function whose code runs in it; null if its counters are not known */
    uint64_t *before; /* values of the counters of `function` at the last time that a region got its work */
    bool ended;       /* ended, but its frame is not innermost: the frame represents the code around the region */
};

struct PhaseRecord;

/* Work that moved from a function to a region in it. */
struct Gift {
    Node *from, *to;
    uint64_t amount[1 + QUIPU_WEIGHTED]; /* visits, then effort */
    Gift *next;
};

/* Annotations of a thread, created with its first open region. */
struct Annotations {
    uint32_t count;
    bool busy; /* the thread uses them now; a signal handler that interrupts it must not */
    Mark *marks;
    uint64_t *before; /* memory for the counters of marks */
    PhaseRecord *phases;
    Gift *gifts[256]; /* hash table by both nodes */
};

/* Creates new frames, below the active node, for regions that are still open although their frames have ended. The
 * frames from `frame` on have ended. ended: the node whose visit ended, or null; the end of main also ends these
 * regions. */
void reopen(quipu_thread *thread, const Frame *frame, const Node *ended);
/* Returns the node that becomes active again at the end of a visit, if `node` was active at its begin, when `top` was
 * the innermost frame. If the region of `node` has ended since, it is the node of the code around the region. */
Node *going_on(const quipu_thread *thread, const Frame *top, Node *node);
/* Runs after the end of a visit. ended: its node. cuts: the frames from `frame` on ended with it, because their code
 * did not return. */
void after_end(quipu_thread *thread, const Frame *frame, const Node *ended, bool cuts);
/* Adds iterations of phases and wrong nesting to the profile. Call under the lock. */
void describe_annotations();
/* Runs in the child of a fork, whose profile begins empty. */
void forget_iterations();

/* Returns the iterations of a phase (iterations.cpp); null if they are not recorded. */
PhaseRecord *phase_of(Thread *thread, const quipu_region *region);
void begin_iteration(quipu_thread *thread, PhaseRecord *phase, long long iteration);
void end_iteration(quipu_thread *thread, PhaseRecord *phase);
void describe_iterations(const Thread *thread);

} // namespace quipu

#endif
