/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rank that delays the other ranks at probed collective operations, and the call paths of this rank that
 * cause the delay (delays.c). Under SMPI: at all collective operations and at messages (delays_smpi.c). */
#ifndef QUIPU_MPI_DELAYS_H
#define QUIPU_MPI_DELAYS_H

#include "call.h"
#include "quipu_runtime.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef SMPI_H
/* Number of ticks (quipu_ticks) per nanosecond; 0: no clock is read. */
QUIPU_MPI_VARIABLE double quipu_mpi_ticks_per_ns;

/* After this number of successive probes, a rank corrects the begin of its interval (quipu_mpi_begin_since). Another
 * process may have delayed the exit of the rank from some of these probes, but hardly from all of them. */
enum { QUIPU_MPI_LAGS = 8 };

/* The interval of this rank since its latest synchronization on a communicator. */
struct quipu_mpi_since {
    struct quipu_interval *interval;
    uint64_t begun; /* moment of the synchronization (quipu_ticks); 0: there was no synchronization */
    uint64_t lag;   /* delay of the exit of this rank from a probe (ticks): minimum over the latest `lags` probes */
    uint32_t lags;
};

/* Result of a probe. Moments are readings of quipu_ticks. */
struct quipu_mpi_probe {
    uint64_t arrived, left; /* arrival and exit of this rank */
    uint64_t last_came;     /* arrival of the last rank; 0: not known */
    double cost_share;      /* largest share of the time of a rank that its probes have taken */
};

/* Runs after MPI_Init, before the first probe. Returns false if MPI returned an error. */
bool quipu_mpi_prepare_probes(void);
/* Runs before MPI_Finalize: passes the blocks that this rank has waited for to the runtime, and frees the MPI objects
 * that the probes use. */
void quipu_mpi_end_probes(void);
/* Synchronizes the processes of a communicator by a reduction (the probe). If `since` has begun on all of them, the
 * late rank charges the waiting of the other ranks to its call paths. node: the operation that the ranks wait in.
 * weight: number of calls that the probe represents; 0: nothing is charged. cost_share: share of the time of this rank
 * that probes have taken so far. Returns false if MPI returned an error. */
bool quipu_mpi_probe(const struct quipu_mpi_since *since, struct quipu_node *node, MPI_Comm comm, uint64_t weight,
                     double cost_share, struct quipu_mpi_probe *probe);
/* Begins a new interval at this probe, which synchronized the ranks of the communicator. cost: duration (ticks) of a
 * probe without waiting. */
void quipu_mpi_begin_since(struct quipu_mpi_since *since, const struct quipu_mpi_probe *probe, uint64_t cost);
/* Returns a checksum of the clocks of all call paths (critical.c). */
uint64_t quipu_mpi_clocks(void);
/* Sets the clocks of all ranks of the communicator to their maximum, at a probe that represents `weight` calls (0 as in
 * quipu_mpi_probe). Returns false if MPI returned an error. */
bool quipu_mpi_set_clocks(MPI_Comm comm, int ranks, uint64_t weight);
/* Passes the blocks that this rank has waited for to the runtime. */
void quipu_mpi_record_awaited(void);
#else /* SMPI: all ranks are in one process */
/* The ranks for which a collective operation waits: all wait for all, all for the root, or the root for all. */
enum quipu_mpi_awaited { QUIPU_MPI_AWAITS_ALL, QUIPU_MPI_AWAITS_ROOT, QUIPU_MPI_ROOT_AWAITS };
/* The arrival of a rank at an operation, and the time of the rank in the interval from the latest synchronization of
 * all ranks to this arrival. */
struct quipu_mpi_arrival {
    uint64_t at;                  /* moment of the arrival in simulated time (ns), set by the caller */
    struct quipu_node *operation; /* the call path that arrives */
    struct quipu_mpi_rank *rank;  /* NULL: the interval is not known */
    struct quipu_spent *spent;    /* time of each call path outside of MPI (ns), sorted by `path` */
    size_t paths;                 /* number of these call paths */
    double waited;                /* time that the rank has waited in the interval (ns) */
};
/* Sets all members except `at` for the running rank, which arrives now. */
void quipu_mpi_note_arrival(struct quipu_mpi_arrival *arrival);
/* Frees the memory of the members, and sets them to 0. */
void quipu_mpi_forget_arrival(struct quipu_mpi_arrival *arrival);
/* Charges the waiting after all ranks of a communicator have arrived, and frees the data of the arrivals. all: whether
 * the communicator contains all ranks of the program. root: -1 if there is none. Returns whether the operation has
 * synchronized all ranks of the program. */
bool quipu_mpi_account(struct quipu_mpi_arrival *arrivals, int ranks, bool all, enum quipu_mpi_awaited awaited,
                       int root);
/* Charges the waiting of one rank for another rank, which posted the other side of the same message later. */
void quipu_mpi_account_message(const struct quipu_mpi_arrival *late, const struct quipu_mpi_arrival *waiting);
/* Records waiting of the running rank (ns of simulated time) whose cause is not a single rank. */
void quipu_mpi_waited_unaccounted(uint64_t ns);
/* Begins a new interval of the running rank, because an operation has synchronized all ranks of the program. */
void quipu_mpi_synchronized(struct quipu_mpi_rank *running);
/* A number of basic blocks for each call path, in the order of quipu_executed. */
struct quipu_mpi_blocks {
    size_t room; /* number of elements */
    uint64_t *of;
};
/* Records the clocks of the running rank at its arrival at an operation. A clock counts the blocks that the rank has
 * executed in a call path and the blocks that it has waited for. reached: the largest clocks of the ranks that others
 * wait for, which the clocks of this rank may raise; NULL if no rank waits for this rank. */
void quipu_mpi_reach(struct quipu_mpi_blocks *reached);
/* Records that the running rank leaves the operation in which it waited: each of its clocks becomes at least the clock
 * in `reached`. */
void quipu_mpi_go_on_from(const struct quipu_mpi_blocks *reached);
/* Runs before MPI_Finalize: passes the blocks that the running rank has waited for to the runtime. */
void quipu_mpi_end_probes(void);
#endif

#endif
