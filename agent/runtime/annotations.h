/* SPDX-License-Identifier: Apache-2.0 */
/* annotations.h: regions that the program names while it runs (quipu/region.h, and the interfaces of other tools). */
#ifndef QUIPU_ANNOTATIONS_H
#define QUIPU_ANNOTATIONS_H

#include "tree.h"

namespace quipu {

/* An open region of a thread. */
struct Mark {
    quipu_region *region;
    Frame *frame;
    Node *at;         /* its call path */
    uint64_t *visits; /* of its call path */
    Node *function;   /* whose code runs in it, with counters in memory that are right at every call; null: none */
    uint64_t *before; /* the counters of `function`, and its visits after them, as far as they were given to regions */
    bool ended;       /* and its frame is not the innermost one: it goes on as what is around it */
};

struct PhaseRecord;

/* Work of a function that a region in it got. */
struct Gift {
    Node *from, *to;
    uint64_t amount[1 + QUIPU_WEIGHTED]; /* visits, then effort */
    Gift *next;
};

/* What a thread has of them; made with its first. */
struct Annotations {
    uint32_t count;
    bool busy; /* in a call, which a signal handler may have interrupted */
    Mark *marks;
    uint64_t *before; /* where marks have theirs */
    PhaseRecord *phases;
    Gift *gifts[256]; /* by their nodes */
};

/* After the frames from `frame` on have ended in another way than by the end of their regions: those that are open are
 * still open, in what is active now. ended: what is active no more; after main nothing is open. */
void reopen(quipu_thread *thread, const Frame *frame, const Node *ended);
/* The call path to go on with where `node` was active when `top` was the innermost frame: that of a region which has
 * ended meanwhile goes on as what is around it. */
Node *going_on(const quipu_thread *thread, const Frame *top, Node *node);
/* After the end of a visit. cuts: with frames from `frame` on. */
void after_end(quipu_thread *thread, const Frame *frame, const Node *ended, bool cuts);
/* Adds to the profile what it does not contain yet: iterations of phases, wrong nesting. Under the lock. */
void describe_annotations();
/* In the child of a fork, whose profile begins empty. */
void forget_iterations();

/* Iterations of a phase (iterations.cpp). Null: not kept. */
PhaseRecord *phase_of(Thread *thread, const quipu_region *region);
void begin_iteration(quipu_thread *thread, PhaseRecord *phase, long long iteration);
void end_iteration(quipu_thread *thread, PhaseRecord *phase);
void describe_iterations(const Thread *thread);

} // namespace quipu

#endif
