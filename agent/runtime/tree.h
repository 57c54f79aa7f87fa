/* The call-path tree of one thread and its stack of active frames. */
#ifndef QUIPU_TREE_H
#define QUIPU_TREE_H

#include "profile.h"
#include "quipu.h"

#include <stddef.h>
#include <stdint.h>

namespace quipu {

using Node = quipu_node;

/* From a node to the node that a region entered there leads to: a child, the node itself or one of its callers when
 * the region is active there already (recursion folds), or the node itself when there was no room for a child. */
struct Link {
    uint64_t region;
    Node *target;
    Link *next;
    bool counts; /* false: entering is not a visit (no room) */
};

} // namespace quipu

/* In the mapped file; begins as quipu_profile_node, whose hidden words are the pointers here. */
struct quipu_node {
    uint32_t id;
    uint32_t parent;
    uint64_t region;
    quipu_node *up;
    quipu::Link *links;
    quipu::Link *latest; /* the link that was followed last; never null (an empty link at first) */
    uint64_t hidden[3];
    uint64_t metrics[QUIPU_METRIC_COUNT];
};
static_assert(sizeof(quipu_node) == sizeof(quipu_profile_node) + size_t{8} * QUIPU_METRIC_COUNT);

namespace quipu {

struct Frame : quipu_frame {
    uint64_t flushed; /* how much of `blocks` the node has already */
};

/* Everything about one thread; kept for the next thread when it ends. */
struct Thread {
    Frame *top; /* innermost active frame; frames[0] belongs to the root and is always there */
    Frame *limit;
    Frame *frames;
    Node *root;
    uint64_t last; /* clock at the latest event */
    uint32_t location;
    bool busy; /* inside of a slow path: a signal handler must not enter it again */
    bool in_use;
    uint64_t overflow; /* frames that found no room on the stack */
    quipu_profile_chunk *chunk;
    Thread *next; /* all threads of the process */
};

/* Region ids of regions that the filter leaves out, and of none. */
constexpr uint64_t left_out = ~uint64_t{0};
constexpr uint64_t no_region = left_out - 1;

extern Profile profile;
extern uint32_t clock_kind;
extern bool active;

/* Set by quipu_share. */
extern const quipu_ranks *ranks;

/* The state of the rank that runs in a shared process, made at first use; null if nobody is measured. */
Thread *running_rank();
/* The state of the calling thread, made at first use; null when there is no memory for it. */
Thread *begin_thread();
/* The link to follow from `node` for `region`, made at first use. */
Link *find_link(Thread *thread, Node *node, quipu_region *region);
/* The state of the calling thread if it has one already. */
Thread *measured_thread();
/* The calling thread is not measured from now on (until begin_thread). */
void forget_thread();
/* Adds the time since the latest event to the node, by whatever clock. Simulated time goes back where the simulator
 * counted less than passed here. */
void charge_any_time(Thread *thread, Node *node);
/* Adds what active frames have counted so far to their nodes. */
void settle(Thread *thread);
/* Calls `visit` for every thread that was ever measured. */
void for_each_thread(void (*visit)(Thread *));
/* Makes the profile file at first use. False: nothing is measured. */
bool open_profile();
/* Gives the region its id (or left_out). Under the lock. */
void register_region(quipu_region *region);

/* One lock for everything that happens rarely: regions, chunks, threads, attributes. */
void lock();
void unlock();

} // namespace quipu

#endif
