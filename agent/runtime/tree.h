/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the runtime share: the call-path tree of one thread, its stack of active frames, and the process.
 */
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

/* Of this process: with the metrics of the sampler. */
constexpr uint32_t most_metrics = QUIPU_METRIC_COUNT + 48;
extern uint32_t node_size, metric_count;

static_assert(sizeof(Node) == sizeof(quipu_profile_node) + size_t{8} * QUIPU_METRIC_COUNT);
static_assert(sizeof(quipu_thread) == sizeof(quipu_profile_thread));

/* All links of a thread by node and region. Its thread looks for links without the lock, also in a signal handler that
 * interrupts one that is added: places are filled once, and places that were outgrown stay. */
struct Links {
    struct Places {
        size_t mask;
        Link *place[1]; /* mask + 1 */
    } *places;
    size_t count;

    Link *find(const Node *from, uint64_t region) const;
    /* Under the lock. False if there is no memory. */
    bool add(Link *link);
};

struct RegionRecord;
struct Sampler;
struct Annotations;
struct Delays;

/* The counters of a region, in a thread, on call paths that found no room in the file. Their effort is added to the
 * call paths that they count with. */
} // namespace quipu

struct quipu_folded {
    const quipu::RegionRecord *region;
    const int64_t *weights; /* of the region and all scopes in it, as many rows as the region has */
    quipu_node *caller;     /* for which it was counted since they were 0 */
    quipu_folded *next;
    uint64_t counters[1]; /* as many as the region has */
};

namespace quipu {

/* Frames of a user-level context (contexts.cpp), or of the thread itself. */
struct FrameStack {
    Frame *frames;
    Frame *limit;
    bool suspended;   /* a call of swapcontext will go on with it */
    FrameStack *next; /* of those that nobody uses */
};

/* What is private of a thread; kept for the next thread when it ends. */
struct Thread {
    quipu_thread *shared;
    Frame *frames; /* of the running context; frames[0] is always there, at first it belongs to the root */
    FrameStack own_stack;
    FrameStack *stack; /* the frames of the running context */
    FrameStack *spare;
    Node *root;
    quipu_profile_chunk *nodes;
    quipu_profile_chunk *counters;
    uint64_t *nowhere; /* counters that nobody reads */
    uint64_t no_visits;
    Links links;
    Folded *folded;
    uint64_t folding[2]; /* see folding.cpp */
    uint64_t begun;      /* ticks */
    double stamped;      /* ticks that time stamps took, see budget.cpp */
    struct UntimedPath {
        Node *node;
        UntimedPath *next;
    } *untimed; /* call paths that lost their time */
    Sampler *sampler;
    Annotations *annotations; /* null: it has named no region */
    Node **list;              /* all nodes, in the order in which they were made */
    uint32_t listed, list_room;
    Delays *delays; /* null: nobody waited for it */
    Node folder;    /* links from here lead to what is folded, by region */
    Thread *next;   /* all threads of the process */
    struct Copy {
        const Node *of;
        Node *node;
    } copies[64]; /* copied lately */
    quipu_link *table[2 * QUIPU_TABLE_ENTRIES];
};

/* Where what happens at `here` counts. Outside of all regions a node of nobody is active (id 0), whose time is not
 * kept; work there belongs to the call path that the thread was started on. */
inline Node *counted(Node *here) { return here->id ? here : here->up; }

inline Thread *own(const quipu_thread *thread) { return static_cast<Thread *>(thread->own); }

/* Whether the thread is in no region. */
inline bool is_outside(const quipu_thread *thread) {
    const Frame *first = own(thread)->frames;
    return __atomic_load_n(&thread->top, __ATOMIC_RELAXED) == first &&
           __atomic_load_n(&thread->here, __ATOMIC_RELAXED) == first->node;
}

/* The call path that started this thread; null if it is not known. */
extern __thread Node *thread_origin;
/* Where threads that this one starts belong: what is active here; the origin of this thread if it is not measured. */
Node *current_path();

/* For what a thread writes about itself (hot.h). */
template <typename T> inline T get(const T &place) { return __atomic_load_n(&place, __ATOMIC_RELAXED); }
template <typename T> inline void put(T &place, T value) { __atomic_store_n(&place, value, __ATOMIC_RELAXED); }

extern Profile profile;
extern uint32_t clock_kind;
extern bool active;  /* this process is measured */
extern bool decided; /* whether it is will not change */

/* Set by quipu_share. */
extern const quipu_ranks *ranks;

/* The state of the rank that runs in a shared process, made at first use; null if nobody is measured. */
quipu_thread *running_rank();
/* The state of the calling thread or running rank if it has one already. */
quipu_thread *measured_thread();
/* Adds the time since the latest event to the active node, by whatever clock. Simulated time goes back where the
 * simulator counted less than passed here. */
void charge_any_time(quipu_thread *thread);
/* The state of the calling thread, made at first use; null when there is no memory for it. */
quipu_thread *begin_thread();
/* The contexts of a thread that ends are gone: its own frames again. */
void leave_contexts(Thread *thread);
/* The link to follow from the active node for `region`, made at first use and put into the table, unless it counts with
 * its caller. Null: inside of what holds the lock, or no memory. */
Link *find_link(quipu_thread *thread, quipu_region *region);
/* A node, with counters in the file if its region has some; null if there is no room for both. Under the lock. */
Node *new_node(Thread *thread, Node *up, uint64_t region, uint32_t count);
/* A node, and those of the functions that were inlined into its function (scopes.cpp); null if there is no room for all
 * of them. Under the lock. */
Node *new_function_node(Thread *thread, Node *up, const RegionRecord *region, uint32_t count);
/* The node of a scope that is entered from `from`, where its function is active; null: there is none. */
Node *scope_below(const Thread *thread, Node *from, const RegionRecord *scope);
/* Where a scope of a function counts that was entered last; null: with what is active. */
Node *find_scope(const quipu_thread *thread, const quipu_region *function, uint64_t scope);
/* The counters of a region that finds no room; null if there is no memory. Under the lock. */
Folded *folded_of(Thread *thread, uint64_t region);
/* What is entered by a link to such a region (folding.cpp): its frame, null if there is none left; for a visit of a
 * quiet region its counters. */
Frame *enter_folded(quipu_thread *thread, const Link *link);
uint64_t *count_folded(quipu_thread *thread, const Link *link);
/* Before the frames from `frame` on end. */
void end_folded(Thread *thread, const Frame *frame);
/* The last of the frames that belong to this one. */
Frame *last_of(Thread *thread, Frame *frame);
/* Adds what was counted so far to the callers. */
void settle_folded(Thread *thread);
/* The region with this id; null: not known. */
const RegionRecord *region_of(uint64_t id);
/* The call path for the function `scope` that was inlined into the one around the region that is active at `from`; null
 * if no region is, or there is no room. Under the lock. */
Node *annotated_scope(Thread *thread, Node *from, const RegionRecord *scope);
/* A thread ends, or its state is not that of this process: nothing is open in it. */
void forget_annotations(Thread *thread);
/* The node of `thread` for a call path of any thread, made without a visit. */
Node *copy_path(quipu_thread *thread, Node *path);
/* Adds the time since the latest event to the active node. */
void settle(quipu_thread *thread);
/* Calls `visit` for every thread that was ever measured. */
void for_each_thread(void (*visit)(quipu_thread *));
/* Before a fork: notes the state of this thread, because the parent goes on meanwhile. */
void note_this_thread();
/* In the child of a fork: of the threads only this one goes on. Its next begin_thread() gives its state back. */
void keep_one_thread();
/* Makes the profile file at first use. False: nothing is measured. */
bool open_profile();
/* What QUIPU_FILTER names; a mistake in it ends the process. Under the lock. */
void read_run_filter();
/* Gives the region its id, and the scopes in it the following ones; notes what the filter leaves out. Under the lock.
 */
void register_region(quipu_region *region);
/* The same at first use, without the lock. False: inside of what holds it. */
bool make_known(quipu_region *region);

/* FNV-1a, from an earlier hash. */
uint64_t hash_more(const void *data, size_t bytes, uint64_t hash);

/* How many regions there are; their ids count from 1. */
extern uint64_t regions;
struct RegionRecord {
    uint64_t id;
    const char *text; /* the record in the profile, which begins with the name */
    const int64_t *weights;
    const int64_t *additions; /* of each row: what counting does */
    uint32_t rows;            /* of weights */
    quipu_hook hook;
    const int64_t *scope_rows; /* see quipu_scope */
    uint32_t scope_row_count;
    uint32_t parent; /* of a scope */
    uint32_t index;  /* of a scope: its function is the region with the id that is lower by this */
    uint32_t scopes; /* how many regions from this one on are the scopes of one function; 0: it is no such function */
    bool in_file;    /* else it found no room, and has no call paths */
    bool is_body;    /* of a parallel construct */
    bool is_user;    /* named by the program (annotations.cpp) */
    bool is_mpi;
    bool is_openmp;
};
/* As it goes into the header of the profile. */
const char *metric_table();
extern quipu_costs event_costs;
/* Adds an attribute to the profile. Under the lock. owner: 0 for the process, else the number of a location + 1. */
void set_attribute(const char *key, const char *value, uint64_t owner = 0);
/* At the end of the process: what came after the reduction over MPI, if there was one. */
void write_rests();
/* In the child of a fork: it took no part in a reduction. */
void forget_reduction();
/* Zeroed address space, which takes memory where it is used; null if there is none. */
void *reserve(size_t bytes);
/* How many bytes of the stack a new thread will have; 0: not known. */
extern __thread size_t thread_stack;
/* Zeroed memory for the rest of the process; null if there is none. Under the lock. Not of malloc: a signal handler may
 * have interrupted the malloc of the program, and what only the mapped file points to would be a leak to tools that
 * look for leaks in the program. */
void *keep(size_t bytes);
/* Makes room for the next calls of keep() now. False if there is none. */
bool keep_more(size_t bytes);

/* Counters that nobody reads, for code that runs unmeasured on this thread. */
uint64_t *idle_counters();
/* In a process that is not measured: the usual way, which the pass emits inline, becomes the way of this thread. */
void idle_thread();
/* Ends the frames above this one if it is of such a thread. */
void end_idle(Frame *frame);
/* quipu_current, and what goes with it. */
void make_current(quipu_thread *thread);
/* quipu_measuring, and its copies. */
void set_measuring(bool value);
/* Whether this is what idle_thread() made. */
inline bool is_idle(const quipu_thread *thread) { return !thread->own; }

/* Samples (sampler.cpp): at a rate of processor time a signal comes to the running thread, and what passed since the
 * last one (processor time, counters of the processor) goes to the call path that is active.
 *
 * What QUIPU_SAMPLE and QUIPU_COUNTERS ask for; a mistake in them ends the process. Under the lock, before the profile
 * is made: samples and counters are further metrics of its nodes. */
void read_sampling_options();
/* How many metrics nodes have beside those of metrics.def, and their lines for the header of the profile. */
uint32_t sampled_metrics();
const char *sampled_metric_lines();
/* Metrics that only some runs have (further.cpp). Which of them this process keeps; `before`: how many other metrics
 * nodes have. Under the lock, before the profile is made. */
void read_further_metrics(uint32_t before);
uint32_t further_metrics();
const char *further_metric_lines();
/* Whether the metric at this place of a node is one of them of which the largest value counts. */
bool is_further_max(uint32_t place);
/* Says which of them were asked for and are not counted. Under the lock. */
void describe_further_metrics();
/* Lets those who count them bring the nodes up to date. last: the values are final. */
void count_before_flush(bool last);
/* The calling thread is sampled from here on, if that was asked for. */
void begin_sampling();
/* What passed since the last sample goes to the active call path. */
void sample_now();
void end_sampling();
/* Of all threads: the program gives up system calls. Under the lock. */
void stop_sampling();
/* In the child of a fork, whose events and timers are the parent's. */
void forget_sampling();
/* What readers should know of the samples. Under the lock. */
void describe_sampling();

/* Where in the code samples were taken (functions.cpp). Whether QUIPU_SAMPLE_FUNCTIONS asks for samples of all code,
 * measured or not. */
bool samples_functions();
/* Room for addresses, if they are asked for. Under the lock, when the profile is there. */
void make_function_table();
/* Adds to the address that a signal interrupted; async-signal-safe. outside: of all regions. values: one per metric of
 * the sampler. */
void count_function(const void *context, bool outside, const uint64_t *values);
/* Where programs and libraries are in memory. Under the lock. */
void describe_functions();

/* "library:PATH" of the library that holds `address`, whose static facts tell more of the regions there; null if it is
 * the program, or none, or was asked for before. Under the lock; valid until the next call. */
const char *new_library_of(const void *address);

/* Whether both are code of one library; not of the program itself. */
bool are_in_one_library(const void *code, const void *other);

/* The name of the library or program that holds `address`, for a person. */
void name_of_file(const void *address, char *name, size_t size);

/* Nanoseconds, at best: with warm caches, and of several attempts the quickest. */
struct Overhead {
    double pair = 0;    /* quipu_enter and quipu_exit of a region, with the clock that was chosen */
    double inside = 0;  /* the part of it that the region's own time contains; the rest is in its caller's */
    double quiet = 0;   /* quipu_count: a visit of a region without a hook */
    double counter = 0; /* adding to one counter in memory */
    double clock = 0;   /* one reading of the clock */
};

/* Measures on a call tree of its own, of which nothing gets into the profile; takes about a tenth of a millisecond.
 * Under the lock, when the clock is chosen. */
Overhead measure_overhead();

/* See quipu_known_link. */
inline uint64_t id_of(const quipu_region *region) { return __atomic_load_n(&region->id, __ATOMIC_ACQUIRE); }
inline uint64_t hash_of(const quipu_region *region) { return __atomic_load_n(&region->hash, __ATOMIC_RELAXED); }

/* One lock for everything that happens rarely: regions, chunks, threads, attributes. Held as long as this lives; by
 * hand only around a fork. Signals wait meanwhile, and errno stays as it was. */
void lock();
void unlock();
class Locked {
  public:
    Locked() { lock(); }
    ~Locked() { unlock(); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;
};
/* Whether this thread holds it: an allocator of the program that was called from there, or the handler of a signal that
 * cannot wait, must not take it again. */
bool is_locked_here();
bool may_call_system();
/* No system calls from here on: the program gave up the right to them. */
void forgo_system_calls();

} // namespace quipu

#endif
