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

static_assert(sizeof(Node) == sizeof(quipu_profile_node) + size_t{8} * QUIPU_METRIC_COUNT);
static_assert(sizeof(quipu_thread) == sizeof(quipu_profile_thread));

/* What is private of a thread; kept for the next thread when it ends. */
struct Thread {
    quipu_thread *shared;
    Frame *frames; /* frames[0] belongs to the root and is always there */
    Node *root;
    bool busy; /* inside of a slow path: a signal handler must not enter it again */
    quipu_profile_chunk *nodes;
    quipu_profile_chunk *counters;
    uint64_t *nowhere; /* counters of call paths that found no room */
    uint64_t no_visits;
    Thread *next; /* all threads of the process */
    struct Copy {
        const Node *of;
        Node *node;
    } copies[64]; /* copied lately */
    quipu_link *table[QUIPU_TABLE_ENTRIES];
};

/* Where what happens at `here` counts. Outside of all regions a node of nobody is active (id 0), whose time is not
 * kept; work there belongs to the call path that the thread was started on. */
inline Node *counted(Node *here) { return here->id ? here : here->up; }

/* The call path that started this thread; null if it is not known. */
extern __thread Node *thread_origin;

inline Thread *own(const quipu_thread *thread) { return static_cast<Thread *>(thread->own); }

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
/* The link to follow from the active node for `region`, made at first use and put into the table. Null: inside of a
 * signal handler that interrupted the making of another, or no memory. */
Link *find_link(quipu_thread *thread, quipu_region *region);
/* Makes a node; null if there is no room. Under the lock. */
Node *new_node(Thread *thread, Node *up, uint64_t region);
/* The link that leads from a node into a region; null if nothing did so far. */
Link *link_to(const Node *from, uint64_t region);
/* Makes the nodes of the functions that were inlined into that of `owner`. Under the lock. */
void add_scopes(Thread *thread, Node *owner);
/* Where a scope of a function counts that was entered last; null: with what is active. */
Node *find_scope(const quipu_thread *thread, const quipu_region *function, uint64_t scope);
/* The node of `thread` for a call path of any thread, made without a visit. */
Node *copy_path(quipu_thread *thread, Node *path);
/* Adds the time since the latest event to the active node. */
void settle(quipu_thread *thread);
/* Calls `visit` for every thread that was ever measured. */
void for_each_thread(void (*visit)(quipu_thread *));
/* In the child of a fork: of the threads only this one goes on. Its state is given back by the next begin_thread(). */
void keep_one_thread();
/* Makes the profile file at first use. False: nothing is measured. */
bool open_profile();
/* The id of regions that found no room in the file: they have no node, what they call counts with their caller. */
constexpr uint64_t no_room = ~uint64_t{0};
/* Reads the filter of the run, if there is one; a mistake in it ends the process. */
void read_run_filter();
/* Gives the region its id, and the scopes in it the following ones. Under the lock. */
void register_region(quipu_region *region);

/* FNV-1a, from an earlier hash. */
uint64_t hash_more(const void *data, size_t bytes, uint64_t hash);

/* How many regions there are; their ids count from 1. */
extern uint64_t regions;
struct RegionRecord {
    uint64_t id;
    const char *text; /* the record in the profile, which begins with the name */
    const int64_t *weights;
    uint32_t rows; /* of weights */
    quipu_hook hook;
    const int64_t *scope_rows; /* see quipu_scope */
    uint32_t scope_row_count;
    uint32_t parent; /* of a scope */
    uint32_t scopes; /* how many regions from this one on are the scopes of one function; 0: it is no such function */
};
/* The region with this id; null if it found no room. Under the lock. */
const RegionRecord *record_of_region(uint64_t id);
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
/* Zeroed memory for the rest of the process; null if there is none. Under the lock. Not of malloc: what only the mapped
 * file points to would be a leak to tools that look for leaks in the program. */
void *keep(size_t bytes);

/* Counters that nobody reads, for code that runs unmeasured on this thread. */
uint64_t *idle_counters();
/* In a process that is not measured: the usual way, which the pass emits inline, becomes the way of this thread. */
void idle_thread();
/* Ends the frames above this one if it is of such a thread. */
void end_idle(Frame *frame);
/* Whether this is what idle_thread() made. */
inline bool is_idle(const quipu_thread *thread) { return !thread->own; }

/* "library:PATH" of the library that holds `address`, whose static facts tell more of the regions there; null if it is
 * the program, or none, or was asked for before. Under the lock; valid until the next call. */
const char *new_library_of(const void *address);

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
 * hand only around a fork. */
void lock();
void unlock();
class Locked {
  public:
    Locked() { lock(); }
    ~Locked() { unlock(); }
    Locked(const Locked &) = delete;
    Locked &operator=(const Locked &) = delete;
};

} // namespace quipu

#endif
