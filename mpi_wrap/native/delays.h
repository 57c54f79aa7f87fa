/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rank that delays the others at probed collective operations, and the call paths of this rank that cause the
 * delay (delays.c). */
#ifndef QUIPU_MPI_DELAYS_H
#define QUIPU_MPI_DELAYS_H

#include "call.h"
#include "quipu_runtime.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef SMPI_H
/* Ticks of the clock per nanosecond; 0: there is no clock. */
QUIPU_MPI_VARIABLE double quipu_mpi_ticks_per_ns;

/* After this number of successive probes, the moment of synchronization is known even if processors were busy. */
enum { QUIPU_MPI_LAGS = 8 };

/* The interval of this rank since its latest synchronization on a communicator. */
struct quipu_mpi_since {
    struct quipu_interval *interval;
    uint64_t begun; /* ticks; 0: there was no synchronization */
    uint64_t lag; /* ticks between the last arrival and the exit of this rank: minimum over the latest `lags` probes */
    uint32_t lags;
};

/* Result of a probe, in ticks. */
struct quipu_mpi_probe {
    uint64_t arrived, left; /* arrival and exit of this rank */
    uint64_t last_came;     /* arrival of the last rank; 0: not known */
    double cost_share;      /* maximum over the ranks */
};

/* Runs after MPI_Init, before the first probe. Returns false if MPI returned an error. */
bool quipu_mpi_prepare_probes(void);
/* Runs before MPI_Finalize. */
void quipu_mpi_end_probes(void);
/* Synchronizes the processes of a communicator. If `since` has begun on all of them, charges the waiting of this probe
 * at `node`; the probe represents `weight` calls (0: nothing is charged). cost_share: the part of the time of this rank
 * that probes have taken so far. Returns false if MPI returned an error. */
bool quipu_mpi_probe(const struct quipu_mpi_since *since, struct quipu_node *node, MPI_Comm comm, uint64_t weight,
                     double cost_share, struct quipu_mpi_probe *probe);
/* Begins a new interval at this probe, which synchronized the ranks of the communicator. cost: ticks of a probe for
 * which all ranks have arrived. */
void quipu_mpi_begin_since(struct quipu_mpi_since *since, const struct quipu_mpi_probe *probe, uint64_t cost);
/* Returns a checksum of the clocks of all call paths (critical.c). */
uint64_t quipu_mpi_clocks(void);
/* Exchanges the clocks with the other ranks of the communicator at a probe that represents `weight` calls. Returns
 * false if MPI returned an error. */
bool quipu_mpi_set_clocks(MPI_Comm comm, int ranks, uint64_t weight);
/* Passes the blocks that this rank has waited for to the runtime. */
void quipu_mpi_record_awaited(void);
#else /* all ranks are in one process, which has the data of all of them */
/* The ranks for which a collective operation waits: all wait for all, all for the root, or the root for all. */
enum quipu_mpi_awaited { QUIPU_MPI_AWAITS_ALL, QUIPU_MPI_AWAITS_ROOT, QUIPU_MPI_ROOT_AWAITS };
/* The time of a rank from the latest synchronization of all ranks to its arrival at an operation. */
struct quipu_mpi_arrival {
    uint64_t at; /* ns */
    struct quipu_node *operation;
    struct quipu_mpi_rank *rank; /* NULL: not known */
    struct quipu_spent *spent;
    size_t paths;
    double waited; /* ns, until `at` */
};
/* Records that the running rank arrives now. */
void quipu_mpi_note_arrival(struct quipu_mpi_arrival *arrival);
void quipu_mpi_forget_arrival(struct quipu_mpi_arrival *arrival);
/* Charges the waiting after all ranks of a communicator have arrived. all: the communicator contains all ranks of the
 * program. root: -1 if there is none. Returns whether the operation has synchronized all ranks of the program. */
bool quipu_mpi_account(struct quipu_mpi_arrival *arrivals, int ranks, bool all, enum quipu_mpi_awaited awaited,
                       int root);
/* Charges the waiting of a rank for the other side of a message. */
void quipu_mpi_account_message(const struct quipu_mpi_arrival *late, const struct quipu_mpi_arrival *waiting);
/* Records waiting of the running rank that has no single rank as its cause. */
void quipu_mpi_waited_unaccounted(uint64_t ns);
/* Begins a new interval: all ranks, including the running one, continue at this moment. */
void quipu_mpi_synchronized(struct quipu_mpi_rank *running);
/* Blocks by call path, in the order of quipu_executed. */
struct quipu_mpi_blocks {
    size_t room;
    uint64_t *of;
};
/* Records that the running rank arrives at an operation. reached: NULL if no rank waits for this one. Otherwise each
 * element is raised to the blocks of this rank, if these are more; the blocks that it has waited for are included. */
void quipu_mpi_reach(struct quipu_mpi_blocks *reached);
/* Records that the running rank leaves the operation: its clock of each call path becomes at least reached. */
void quipu_mpi_go_on_from(const struct quipu_mpi_blocks *reached);
void quipu_mpi_end_probes(void);
#endif

#endif
