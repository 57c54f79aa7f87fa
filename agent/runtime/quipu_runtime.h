/* SPDX-License-Identifier: Apache-2.0 */
/* quipu_runtime.h: further interface of the runtime for the MPI library and the hook of Python, in addition to quipu.h.
 */
#ifndef QUIPU_RUNTIME_H
#define QUIPU_RUNTIME_H

#include "quipu.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Returns the present time in ticks of the clock. The values of metrics with the unit s are differences of these times.
 * Returns 0 while nothing is measured or no time is recorded. */
uint64_t quipu_ticks(void);

/* Returns the value of an environment variable of the runtime or of the MPI library at the start of this process; NULL
 * if it was not set. The value is the same in all ranks, even if a rank changed its environment since. */
const char *quipu_setting(const char *name);

/* Sets an attribute of this process ("rank", "mpi_size", "mpi_library" …), or replaces its value. */
void quipu_attribute(const char *key, const char *value);
/* Sets an attribute of the calling thread; after quipu_share, of the running rank. */
void quipu_location_attribute(const char *key, const char *value);
/* Returns a copy of the name of a region (quipu/region.h), always at the same address until the end of the process;
 * NULL while nothing is measured or if there is no memory. */
const char *quipu_region_name(const char *name);
/* Updates the profile file: time of the active call path, clock, resource use of the process. Call it at MPI_Finalize.
 * Measuring continues. */
void quipu_flush(void);

/* Ranks that are not processes. A simulator (SimGrid SMPI) runs them in turn on separate stacks, so threads do not
 * identify them. Each rank has a tree like a thread. All trees are in the profile of the process. */
struct quipu_ranks {
    /* Returns the place for the runtime's state of the running rank, which is NULL at first; returns NULL if no
     * measured rank runs. */
    void **(*running)(void);
    /* Returns the time of the running rank in ns, which quipu_ticks returns. It may go back a little. The active call
     * path then loses the difference. */
    uint64_t (*now)(void);
};
/* Sets the ranks of this process. Call it before anything is measured. */
void quipu_share(const struct quipu_ranks *ranks);

/* Returns whether the time of ranks follows from their effort: QUIPU_RATES names a file of rates, which the first call
 * reads. If so, quipu_ranks.now must return simulated time only. */
int quipu_compute_by_effort(void);
/* Begins the simulated time of the running rank. Earlier work takes no time, except the time per visit of each region
 * that is active now. */
void quipu_begin_computations(void);
/* Returns the seconds of the effort of the running rank since its last quipu_computed. */
double quipu_computation(void);
/* Call after each quipu_computation, with its simulated seconds. The call paths with the effort get this time. */
void quipu_computed(double seconds);
/* Sets the simulated duration of the active MPI call, in seconds of the machine on which the rates were measured. If
 * the MPI library itself takes longer by these rates, the rest is part of the next computation. */
void quipu_operated(double seconds);

/* Delays: the time of a thread since its last synchronization with others, and the waiting of others for it. */
struct quipu_interval;
/* Time outside of MPI in a call path since the begin of an interval. path: hash of the names of its regions, the same
 * in all processes. */
struct quipu_spent {
    struct quipu_node *node;
    uint64_t path, ticks;
};
/* Begins an interval of this thread, and ends its previous interval (the argument, or NULL). Returns NULL if there is
 * no memory. */
struct quipu_interval *quipu_begin_interval(struct quipu_interval *interval);
/* Sets *spent to the times of this thread since the begin of the interval, and returns the number of call paths. The
 * array is valid until the next call with this interval. */
size_t quipu_interval_spent(struct quipu_interval *interval, const struct quipu_spent **spent);
/* Records that others waited for `ticks` at `operation` because of `cause` (NULL: unknown). Both are call paths of the
 * thread of the interval. */
void quipu_caused(const struct quipu_interval *interval, const struct quipu_node *operation,
                  const struct quipu_node *cause, uint64_t ticks);
void quipu_end_interval(struct quipu_interval *interval);

/* Basic blocks that the running rank has executed in a call path so far, in all of its threads. path: as above. */
struct quipu_blocks {
    uint64_t path, blocks;
};
/* Sets *blocks to all call paths of this process, including the call paths of its other ranks, and returns their
 * number. The index of a call path never changes. The array is valid until the next call. */
size_t quipu_executed(const struct quipu_blocks **blocks);
/* Records the blocks of other ranks that the running rank waits for. blocks[i] belongs to call path i of
 * quipu_executed: the rank would wait for so many blocks if only this call path took time. */
void quipu_await_blocks(const uint64_t *blocks, size_t count);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
