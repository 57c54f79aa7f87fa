/* SPDX-License-Identifier: Apache-2.0 */
/* quipu_runtime.h: what the MPI library and the hook of Python use besides quipu.h. */
#ifndef QUIPU_RUNTIME_H
#define QUIPU_RUNTIME_H

#include "quipu.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Reading of the clock that the time metric is kept in; metrics with the unit s take differences of it. 0 while nothing
 * is measured or no time is kept. */
uint64_t quipu_ticks(void);

/* What an environment variable of the runtime or of the MPI library said when this process started: the same in all
 * ranks, whatever a rank has made of its environment since. NULL if it was not set. */
const char *quipu_setting(const char *name);

/* A fact about this process ("rank", "mpi_size", "mpi_library" …); the last value of a key holds. */
void quipu_attribute(const char *key, const char *value);
/* A fact about the calling thread; after quipu_share, about the running rank. */
void quipu_location_attribute(const char *key, const char *value);
/* A copy of the name of a region (quipu/region.h) that stays to the end of the process, always the same one; NULL while
 * nothing is measured or if there is no memory. */
const char *quipu_region_name(const char *name);
/* Bring the profile file up to date: time of the active call path, clock, the process's resource use. Call at
 * MPI_Finalize. Measuring goes on. */
void quipu_flush(void);

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

/* Whether the time of ranks is that of their effort: QUIPU_RATES names a file of rates, which is read at the first
 * call. Then `now` is simulated time only. */
int quipu_compute_by_effort(void);
/* Simulated time of the running rank begins: what it did before takes none, but the visits of regions that are still
 * active take the time that a visit of them has besides its effort. */
void quipu_begin_computations(void);
/* The seconds that the effort of the running rank since its last quipu_computed stands for. */
double quipu_computation(void);
/* After each quipu_computation: it took so many seconds of simulated time, which go to the call paths that had the
 * effort. */
void quipu_computed(double seconds);
/* The call of MPI that is active took so many seconds of simulated time, of the rates' machine. If the MPI library
 * itself takes longer, the rest is part of what is computed next. */
void quipu_operated(double seconds);

/* Delays: what a thread did since it was synchronized with others, and how long these waited for it then. */
struct quipu_interval;
/* Time outside of MPI in a call path since the begin of an interval. path: hash of the names of its regions, the same
 * in all processes. */
struct quipu_spent {
    struct quipu_node *node;
    uint64_t path, ticks;
};
/* An interval of this thread begins; with the one that it had before, that ends. NULL: there is no memory. */
struct quipu_interval *quipu_begin_interval(struct quipu_interval *interval);
/* What was spent since then, if by this thread; returns how many call paths `spent` has. It is valid until the next
 * call with this interval. */
size_t quipu_interval_spent(struct quipu_interval *interval, const struct quipu_spent **spent);
/* Others waited at `operation` because of `cause`, both of the thread of the interval; NULL: without a known cause. */
void quipu_caused(const struct quipu_interval *interval, const struct quipu_node *operation,
                  const struct quipu_node *cause, uint64_t ticks);
void quipu_end_interval(struct quipu_interval *interval);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
