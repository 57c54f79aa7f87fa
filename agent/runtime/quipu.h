/* quipu.h: the whole contract between instrumented code, the MPI library and the runtime.
 *
 * The runtime keeps one call-path tree per thread. A region is entered and left; numbers are added to the
 * node of the call path that is active, or to a node that was remembered. The compiler pass, the PMPI
 * library and user code use the same calls. Nothing is measured and nothing is written unless the
 * environment variable QUIPU_DIR names a folder (docs/environment.md).
 */
#ifndef QUIPU_H
#define QUIPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* What kind of place a region is; stored in profiles as its number. */
enum quipu_kind { QUIPU_FUNCTION = 0, QUIPU_MPI = 1, QUIPU_OPENMP = 2, QUIPU_USER = 3, QUIPU_PYTHON = 4 };

enum quipu_metric {
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description) QUIPU_##id,
#include "metrics.def"
#undef QUIPU_METRIC
    QUIPU_METRIC_COUNT
};

/* The metrics that the pass counts: columns of the weights of a region. */
enum { QUIPU_WEIGHTED = QUIPU_BYTES_STORED - QUIPU_BLOCKS + 1, QUIPU_MOST_COUNTERS = 4096 };

/* Static descriptor of a region. Lives as long as the program or library that holds it; `id` belongs to the
 * runtime and starts as 0. What follows it is zero unless the pass wrote it. */
struct quipu_region {
    const char *name;    /* linker name: what filters call MANGLED */
    const char *display; /* as a person writes it; NULL if the same as name */
    const char *file;    /* source file, NULL if unknown */
    uint32_t line;       /* line of the definition, 0 if unknown */
    uint32_t kind;       /* enum quipu_kind */
    uint64_t id;
    const int64_t
        *weights;      /* counters + 1 rows of QUIPU_WEIGHTED: the effort of one visit, then of 1 in each counter */
    uint32_t counters; /* at most QUIPU_MOST_COUNTERS */
    uint32_t quiet;    /* 1: without a hook; its effort goes to the call path that is active */
    uint64_t hash;     /* of the name; 0: the runtime computes it */
};

struct quipu_node; /* a call path of one thread */

/* An active region, and the counters of its call path: the pass adds to them. */
struct quipu_frame {
    uint64_t *counters;
    struct quipu_node *node;
};

/* Enter a region; never returns NULL. The frame stays valid until quipu_exit of it or of an outer frame. */
struct quipu_frame *quipu_enter(struct quipu_region *region);
/* Leave the region of this frame; frames above it (left by longjmp or by an exception through foreign code)
 * end first. */
void quipu_exit(struct quipu_frame *frame);
/* A visit of a quiet region; returns the counters to add to. It does not end. */
uint64_t *quipu_count(struct quipu_region *region);
/* Go on at a call path, also one of another thread, without a visit; quipu_exit of the frame goes back. */
struct quipu_frame *quipu_attach(struct quipu_node *path);
/* End all frames above this one: control came back to it by other ways than a return (setjmp returned twice). */
void quipu_unwind(struct quipu_frame *frame);
/* The innermost active frame of this thread: what quipu_unwind takes in functions without a region of their own. */
struct quipu_frame *quipu_top(void);
/* Effort of the active call path, one number for each weighted metric; bytes that a block of memory moved. The
 * reference that counters and weights are tested against uses nothing else. */
void quipu_effort(const int64_t *weights);
void quipu_moved(uint64_t bytes_loaded, uint64_t bytes_stored);

/* What every instrumented program and library calls when it is loaded, before anything else: ends the process, with one
 * line that says what to do, if the pass that made it and this runtime do not fit. This never changes. */
struct quipu_module;
void quipu_check(const struct quipu_module *module);

/* 1 while this process is measured. */
int quipu_active(void);
/* The call path that is active on this thread; NULL while nothing is measured. Stays valid to the end of the
 * process and may be used from any thread. */
struct quipu_node *quipu_here(void);
/* Add to a metric of sum kind; set a metric of max kind to the larger. node may be NULL (nothing happens).
 * Safe from any thread. */
void quipu_add(struct quipu_node *node, enum quipu_metric metric, uint64_t value);
void quipu_max(struct quipu_node *node, enum quipu_metric metric, uint64_t value);

/* Reading of the clock that the time metric is kept in; metrics with the unit s take differences of it. 0 while nothing
 * is measured or no time is kept. */
uint64_t quipu_ticks(void);

/* A fact about this process ("rank", "mpi_size", "mpi_library" …); the last value of a key holds. */
void quipu_attribute(const char *key, const char *value);
/* A fact about the calling thread; after quipu_share, about the running rank. */
void quipu_location_attribute(const char *key, const char *value);
/* Bring the profile file up to date: time of the active call path, clock, the process's resource use. Call at
 * MPI_Finalize. Measuring goes on. */
void quipu_flush(void);

/* Seconds that events take in this process, as its profile says. */
struct quipu_costs {
    double pair;    /* a region is entered and left */
    double quiet;   /* a visit of a region without a hook */
    double counter; /* a counter is added to */
    double clock;   /* a reading of the clock */
};
enum { QUIPU_EVENTS = 2 };

/* What this process has counted so far, all threads; for the reduction over MPI (docs/design/reduction.md). Nodes are
 * in the order in which they were made: parents come before children. */
struct quipu_snapshot {
    uint32_t nodes, regions, metrics; /* regions: one more than the largest index that is used */
    double seconds_per_tick;          /* of metrics with the unit s; 0: no time is kept */
    struct quipu_costs costs;
    const uint32_t *parent;   /* index; UINT32_MAX: a root */
    const uint32_t *region;   /* index; UINT32_MAX: the root of a location, where code runs outside of regions */
    const uint32_t *location; /* thread number */
    const uint8_t *open;      /* 1: the call path was active, and will get more */
    const uint64_t *values;   /* [nodes][metrics] */
    const uint64_t *events;   /* [nodes][QUIPU_EVENTS]: visits of regions without a hook, counters added to */
    const char *const *texts; /* of regions: name, display, file, line, kind, joined by \x1f */
    const char *metric_table; /* as in the header of profiles */
};
/* Takes a snapshot; NULL if nothing is measured or there is no memory. Time stops until quipu_end_snapshot. */
const struct quipu_snapshot *quipu_take_snapshot(void);
/* Time goes on, without what has passed since. With the id of a reduction that holds the snapshot, what this process
 * counts from here to its end also goes into its profile as differences; without (NULL) the snapshot is forgotten. */
void quipu_end_snapshot(const char *reduction);
/* Ranks that are not processes: a simulator (SimGrid SMPI) runs one after the other on stacks of their own, so that
 * threads do not tell them apart. Each rank has a tree like a thread; all are in the profile of the process. */
struct quipu_ranks {
    /* A place for the runtime's state of the rank that runs now, NULL at first; NULL: nobody who is measured. */
    void **(*running)(void);
    /* The time of the running rank in ns, which quipu_ticks returns. It may go back a little: what was counted since
     * then is taken from the call path that is active. */
    uint64_t (*now)(void);
};
/* Call before anything is measured. */
void quipu_share(const struct quipu_ranks *ranks);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
