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
    Node *function;   /* function whose code runs in it; null if its counters may be in registers */
    uint64_t *before; /* counters and then visits of `function` that regions already got */
    bool ended;       /* ended, but its frame is not innermost: it represents the code around it */
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
    bool busy; /* inside of a call, which a signal handler may interrupt */
    Mark *marks;
    uint64_t *before; /* memory for the counters of marks */
    PhaseRecord *phases;
    Gift *gifts[256]; /* indexed by node */
};

/* Reopens regions after the frames from `frame` on ended without the end of their regions. The regions are still open,
 * below the active node. ended: the node that is no longer active; after main all regions are closed. */
void reopen(quipu_thread *thread, const Frame *frame, const Node *ended);
/* Returns the call path to continue with, if `node` was active when `top` was the innermost frame. An ended region
 * continues as the code around it. */
Node *going_on(const quipu_thread *thread, const Frame *top, Node *node);
/* Runs after the end of a visit. cuts: frames from `frame` on ended, too. */
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
