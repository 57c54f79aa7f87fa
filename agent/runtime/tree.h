/* SPDX-License-Identifier: Apache-2.0 */
/* Shared state of the runtime: the call tree of a thread, its stack of active frames, and the process. */
#ifndef QUIPU_TREE_H
#define QUIPU_TREE_H

#include "inlined.h"
#include "profile.h"
#include "quipu_reduction.h"
#include "quipu_runtime.h"

#include <stddef.h>
#include <stdint.h>

namespace quipu {

using Node = quipu_node;
using Link = quipu_link;
using Frame = quipu_frame;
using Folded = quipu_folded;

/* Largest number of metrics of a node, including the metrics of the sampler and those that only some runs have
 * (further.cpp). */
constexpr uint32_t most_metrics = QUIPU_METRIC_COUNT + 48;
extern uint32_t node_size, metric_count;

static_assert(sizeof(Node) == sizeof(quipu_profile_node) + size_t{8} * QUIPU_METRIC_COUNT);
static_assert(sizeof(quipu_thread) == sizeof(quipu_profile_thread));

/* All links of a thread, indexed by node and region. A link is the stored result of entering a region from a node
 * (inlined.h). The thread looks up links without the lock, even in a signal
 * handler that interrupts an insertion. Places are therefore filled once, and outgrown tables stay allocated. */
struct Links {
    struct Places {
        size_t mask;
        Link *place[1]; /* mask + 1 places; null: free */
    } *places;
    size_t count;

    Link *find(const Node *from, uint64_t region) const;
    /* Adds a link. Returns false if there is no memory. Call under the lock. */
    bool add(Link *link);
};

struct RegionRecord;
struct Sampler;
struct Annotations;
struct Delays;
struct Critical;

/* The counters of a region in a thread, for call paths without space in the file. Their effort is added to the callers.
 */
} // namespace quipu

struct quipu_folded {
    const quipu::RegionRecord *region;
    const int64_t *weights; /* sums over the region and all scopes in it; as many rows as the region has */
    quipu_node *caller;     /* the caller that gets the effort of the present counts */
    quipu_folded *next;
    uint64_t counters[1]; /* one per counter of the region */
};

namespace quipu {

/* Frames of a user-level context (contexts.cpp), or of the thread itself. */
struct FrameStack {
    Frame *frames;
    Frame *limit;
    bool suspended;   /* a call of swapcontext will resume it */
    FrameStack *next; /* next unused stack */
};

/* Private state of a thread. After the end of the thread, another thread may reuse it. */
struct Thread {
    quipu_thread *shared;
    Frame *frames; /* frames of the running context; frames[0] always exists, and belongs to the root at first */
    FrameStack own_stack;
    FrameStack *stack; /* the stack with the frames of the running context: own_stack, or another one */
    FrameStack *spare;
    Node *root;
    quipu_profile_chunk *nodes;
    quipu_profile_chunk *counters;
    uint64_t *nowhere;  /* counters for instrumented code whose counts nobody reads, so that it needs no test */
    uint64_t no_visits; /* number of visits that nobody reads */
    Links links;
    Folded *folded;
    uint64_t folding[2]; /* see folding.cpp */
    uint64_t begun;      /* clock at its begin (ticks) */
    double stamped;      /* estimated time for reading the clock so far (ticks), see budget.cpp */
    struct UntimedPath {
        Node *node;
        UntimedPath *next;
    } *untimed; /* call paths whose visits no longer read the clock, because it costs too much (budget.cpp) */
    Sampler *sampler;
    Annotations *annotations; /* null: no named region */
    Node **list;              /* all nodes, in order of creation */
    uint32_t listed, list_room;
    Delays *delays;     /* null: no thread waited for it */
    Critical *critical; /* null: critical_blocks is not measured */
    Node folder;        /* no call path: the origin of the links to folded regions */
    Thread *next;       /* all threads of the process */
    struct Copy {
        const Node *of;
        Node *node;
    } copies[64]; /* call paths that copy_path() returned recently */
    quipu_link *table[2 * QUIPU_TABLE_ENTRIES];
};

/* Returns the node that gets the counts of `here`. A thread that was created inside of a call path begins at a node
 * with id 0 below its copy of this call path. The time of this node is dropped, and its counts belong to the call path.
 */
inline Node *counted(Node *here) { return here->id ? here : here->up; }

inline Thread *own(const quipu_thread *thread) { return static_cast<Thread *>(thread->own); }

/* Returns whether the thread is outside of all regions. */
inline bool is_outside(const quipu_thread *thread) {
    const Frame *first = own(thread)->frames;
    return __atomic_load_n(&thread->top, __ATOMIC_RELAXED) == first &&
           __atomic_load_n(&thread->here, __ATOMIC_RELAXED) == first->node;
}

/* The call path that started this thread; null if it is unknown. */
extern __thread Node *thread_origin;
/* Returns the origin of threads that this thread starts: its active call path, or its own origin if it is not measured.
 */
Node *current_path();

/* Atomic access to data that one thread writes without a lock, and other threads read (hot.h). */
template <typename T> inline T get(const T &place) { return __atomic_load_n(&place, __ATOMIC_RELAXED); }
template <typename T> inline void put(T &place, T value) { __atomic_store_n(&place, value, __ATOMIC_RELAXED); }

extern Profile profile;
extern uint32_t clock_kind;
extern double ticks_per_ns; /* from the calibration at the start */
extern bool active;         /* this process is measured */
extern bool decided;        /* the value of `active` is final */

/* The ranks of this process if it has several (quipu_share); null: the process is one rank. */
extern const quipu_ranks *ranks;

/* Returns the state of the running rank of a shared process, created at first use; null if it is not measured. */
quipu_thread *running_rank();
/* Returns the state of the calling thread or running rank, if it exists. */
quipu_thread *measured_thread();
/* Adds the time since the latest event to the active node. Unlike quipu_charge() (hot.h), it also works with clocks
 * that may go back, such as simulated time; the active node then loses the difference. */
void charge_any_time(quipu_thread *thread);
/* Returns the state of the calling thread, created at first use; null if there is no memory. */
quipu_thread *begin_thread();
/* Makes a thread that ends use its original frames again, because its contexts no longer exist. */
void leave_contexts(Thread *thread);
/* Returns the link from the active node to `region`, created at first use. Unless the region is folded, the link is
 * also stored in the table of recent links. Returns null if this thread holds the lock, or if there is no memory. */
Link *find_link(quipu_thread *thread, quipu_region *region);
/* Creates a node, with counters in the file if its region has counters; null if there is no space. Call under the lock.
 */
Node *new_node(Thread *thread, Node *up, uint64_t region, uint32_t count);
/* Creates a node, and the nodes of functions that were inlined into its function (scopes.cpp); null if there is no
 * space for all. Call under the lock. */
Node *new_function_node(Thread *thread, Node *up, const RegionRecord *region, uint32_t count);
/* Returns the node of an inlined function `scope` in the innermost active call of the function that contains it,
 * searched from `from` outwards; null if there is none. */
Node *scope_below(const Thread *thread, Node *from, const RegionRecord *scope);
/* Returns the node of a scope in the innermost active call of `function`; null: the scope counts with the active node.
 */
Node *find_scope(const quipu_thread *thread, const quipu_region *function, uint64_t scope);
/* Returns the counters of a folded region: a region on call paths without space in the file (folding.cpp). Returns null
 * if there is no memory. Call under the lock. */
Folded *folded_of(Thread *thread, uint64_t region);
/* enter_folded enters a folded region by a link, and returns its frame; null if there is no space for its frames.
 * count_folded counts a visit of a folded region without a frame, and returns its counters. */
Frame *enter_folded(quipu_thread *thread, const Link *link);
uint64_t *count_folded(quipu_thread *thread, const Link *link);
/* Runs before `frame` and the frames above it are removed. Adds the counts of their folded regions to the callers. */
void end_folded(Thread *thread, const Frame *frame);
/* Returns the topmost frame that belongs to `frame`: a folded region has two more frames above its own (folding.cpp).
 * For other regions, this is `frame` itself. */
Frame *last_of(Thread *thread, Frame *frame);
/* Adds the counts of all folded regions so far to their callers. */
void settle_folded(Thread *thread);
/* Returns the region with this id; null if it is unknown. */
const RegionRecord *region_of(uint64_t id);
/* Returns the call path of the inlined function `scope` below the innermost region that the program named and that is
 * active at `from`. Returns null without such a region or without memory. Call under the lock. */
Node *annotated_scope(Thread *thread, Node *from, const RegionRecord *scope);
/* Forgets the regions that the program named and has not ended. Runs when a thread ends, and in the child of a fork for
 * threads that exist only in the parent. */
void forget_annotations(Thread *thread);
/* Returns the node of `thread` for a call path of any thread, created without a visit. */
Node *copy_path(quipu_thread *thread, Node *path);
/* Updates the values of a thread: adds the time since the latest event to the active node (not outside of all regions),
 * and the counts of folded regions to their callers. */
void settle(quipu_thread *thread);
/* Calls `visit` for every thread, including ended threads. */
void for_each_thread(void (*visit)(quipu_thread *));
/* Runs before a fork. Stores the state of this thread: it is in the mapped file, which parent and child share at first,
 * so that the parent may change it before the child runs. */
void note_this_thread();
/* Runs in the child of a fork, where only this thread continues. The next
 * begin_thread() of this thread returns the state that it had at the fork. */
void keep_one_thread();
/* Creates the profile file at first use. Returns false if nothing is measured. */
bool open_profile();
/* Reads the filter that QUIPU_FILTER names. An error in it ends the process. Call under the lock. */
void read_run_filter();
/* Sets the id of the region, and the following ids of its scopes. Applies the filter. Call under the lock. */
void register_region(quipu_region *region);
/* Registers a region at first use; takes the lock itself. Returns false if this thread already holds the lock and the
 * region is not registered yet. */
bool make_known(quipu_region *region);

/* Continues an FNV-1a hash. */
uint64_t hash_more(const void *data, size_t bytes, uint64_t hash);

/* The number of regions. Their ids begin at 1. */
extern uint64_t regions;
struct RegionRecord {
    uint64_t id;
    const char *text; /* the record in the profile, which begins with the name */
    const int64_t *weights;
    const int64_t *additions; /* number of additions to counters that the code executes, by row of weights */
    uint32_t rows;            /* number of rows of weights */
    quipu_hook hook;
    const int64_t *scope_rows; /* see quipu_scope */
    uint32_t scope_row_count;
    uint32_t parent; /* parent of a scope */
    uint32_t index;  /* index of a scope: the id of its function is lower by this number */
    uint32_t scopes; /* of a function: number of its scopes, whose ids begin with its own; else 0 */
    bool in_file;    /* false: the file has no space for it, so it has no call paths */
    bool is_body;    /* body of a parallel construct */
    bool is_user;    /* named by the program (annotations.cpp) */
    bool is_mpi;
    bool is_openmp;
};
/* Returns the metric table for the header of the profile. */
const char *metric_table();
extern quipu_costs event_costs;
/* Adds an attribute to the profile. owner: 0 for the process, otherwise the number of a location + 1. Call under the
 * lock. */
void set_attribute(const char *key, const char *value, uint64_t owner = 0);
/* Runs at the end of the process. If the ranks have combined their profiles over MPI (reduction), writes
 * what each call path has counted since then. */
void write_rests();
/* Runs in the child of a fork, which took no part in a reduction. */
void forget_reduction();
/* Returns zeroed address space, which takes memory only where it is used; null if there is none. */
void *reserve(size_t bytes);
/* Bytes of the stack of a new thread; 0: unknown. */
extern __thread size_t thread_stack;
/* Returns zeroed memory until the end of the process; null if there is none. Call under the lock. It does not use
 * malloc, because a signal handler may have interrupted malloc, and leak checkers would report memory that only the
 * mapped file points to. */
void *keep(size_t bytes);
/* Reserves memory for the next calls of keep(). Returns false if there is none. */
bool keep_more(size_t bytes);

/* Returns counters that nobody reads, for code on a thread that is not measured. */
uint64_t *idle_counters();
/* Prepares a thread of a process that is not measured, so that its inline hooks use the fast path. */
void idle_thread();
/* Ends the frames above this frame, if idle_thread() prepared the thread of the frame. */
void end_idle(Frame *frame);
/* Sets quipu_current and the variables that depend on it. */
void make_current(quipu_thread *thread);
/* Sets quipu_measuring and its copies. */
void set_measuring(bool value);
/* Returns whether idle_thread() created this state. */
inline bool is_idle(const quipu_thread *thread) { return !thread->own; }

/* Sampling (sampler.cpp). A signal interrupts each running thread at fixed intervals of its processor time. The active
 * call path gets the increase since the last sample (processor time, hardware counters).
 *
 * Reads QUIPU_SAMPLE and QUIPU_COUNTERS. An error in them ends the process. Call under the lock before the profile is
 * created, because samples and counters are further metrics of its nodes. */
void read_sampling_options();
/* Returns the number of metrics of nodes in addition to metrics.def, and their lines for the header of the profile. */
uint32_t sampled_metrics();
const char *sampled_metric_lines();
/* Selects the metrics that only some runs have (further.cpp). before: number of other metrics of a node. Call under the
 * lock before the profile is created. */
void read_further_metrics(uint32_t before);
uint32_t further_metrics();
const char *further_metric_lines();
/* Returns whether the metric at this index of a node is a further metric that combines by the maximum. */
bool is_further_max(uint32_t place);
/* Reports requested metrics that are not counted. Call under the lock. */
void describe_further_metrics();
/* Calls the libraries that count further metrics, to update the nodes. last: the values are final. */
void count_before_flush(bool last);
/* Begins to sample the calling thread, if this was requested. */
void begin_sampling();
/* Adds the increase since the last sample to the active call path. */
void sample_now();
void end_sampling();
/* Stops sampling of all threads, because the program gives up system calls. Call under the lock. */
void stop_sampling();
/* Runs in the child of a fork, because events and timers belong to the parent. */
void forget_sampling();
/* Writes attributes of the samples. Call under the lock. */
void describe_sampling();

/* Addresses of samples (functions.cpp). Returns whether QUIPU_SAMPLE_FUNCTIONS requests samples of all code, measured
 * or not. */
bool samples_functions();
/* Creates the table of addresses, if requested. Call under the lock after the profile is created. */
void make_function_table();
/* Adds `values` to the counts of the code address that a signal interrupted; async-signal-safe. outside: outside of all
 * regions; values: one per metric of the sampler. */
void count_function(const void *context, bool outside, const uint64_t *values);
/* Writes the addresses of programs and libraries. Call under the lock. */
void describe_functions();

/* Returns "library:PATH" for the library that contains `address`, so that the merge finds the facts about regions that
 * the pass stored in it. Returns null if the address is in the program or in no library, or if an earlier call returned
 * this library. Call under the lock; the result is valid until the next call.
 */
const char *new_library_of(const void *address);

/* Returns whether both addresses are in the same library, which is not the program. */
bool are_in_one_library(const void *code, const void *other);

/* Writes the readable name of the library or program with `address`. */
void name_of_file(const void *address, char *name, size_t size);

/* Costs in nanoseconds, with warm caches, minimum over several attempts. */
struct Overhead {
    double pair = 0;    /* quipu_enter and quipu_exit of a region, with the selected clock */
    double inside = 0;  /* the part of it in the time of the region; the rest is in the time of its caller */
    double quiet = 0;   /* quipu_count: a visit of a region without a hook */
    double counter = 0; /* adding to one counter in memory */
    double clock = 0;   /* one reading of the clock */
};

/* Measures the costs on a separate call tree that is not in the profile. Takes about a tenth of a millisecond. Call
 * under the lock when the clock is selected. */
Overhead measure_overhead();

/* Atomic access; quipu_known_link explains the order. */
inline uint64_t id_of(const quipu_region *region) { return __atomic_load_n(&region->id, __ATOMIC_ACQUIRE); }
inline uint64_t hash_of(const quipu_region *region) { return __atomic_load_n(&region->hash, __ATOMIC_RELAXED); }

/* The lock for all rare operations: regions, chunks, threads, attributes. Locked holds it during its lifetime; a fork
 * calls lock() and unlock(). Signals are blocked meanwhile, and errno is restored. */
void lock();
void unlock();
class Locked {
  public:
    Locked() { lock(); }
    ~Locked() { unlock(); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;
};
/* Returns whether this thread holds the lock. An allocator of the program that was called under the lock, or a handler
 * of a signal that cannot be blocked, must not take it again. */
bool is_locked_here();
/* Returns false after forgo_system_calls(). */
bool may_call_system();
/* From now on the runtime makes no system calls, because the program gives up the right to make them (sandbox.cpp). */
void forgo_system_calls();

} // namespace quipu

#endif
