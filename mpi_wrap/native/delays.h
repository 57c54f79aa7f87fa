/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank delays the others at probed collective operations, and in which of its call paths (delays.c). */
#ifndef QUIPU_MPI_DELAYS_H
#define QUIPU_MPI_DELAYS_H

#include "call.h"
#include "quipu_runtime.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef SMPI_H
/* Ticks of the clock in a nanosecond; 0: there is no clock. */
QUIPU_MPI_VARIABLE double quipu_mpi_ticks_per_ns;

/* After so many probes in a row it is known when processes were synchronized, although processors were busy then. */
enum { QUIPU_MPI_LAGS = 8 };

/* What this rank did since its latest synchronization on a communicator. */
struct quipu_mpi_since {
    struct quipu_interval *interval;
    uint64_t begun; /* ticks; 0: there was none */
    uint64_t lag;   /* the least by which this rank left later than the last one came, of so many latest probes */
    uint32_t lags;
};

/* What a probe found. Ticks. */
struct quipu_mpi_probe {
    uint64_t arrived, left; /* ticks at which this rank came, and at which it went on */
    uint64_t last_came;     /* at which the last one came; 0: not known */
    double cost_share;      /* the largest of all ranks */
};

/* After MPI_Init, before the first probe. False: MPI refused. */
bool quipu_mpi_prepare_probes(void);
/* Before MPI_Finalize. */
void quipu_mpi_end_probes(void);
/* Synchronizes the processes of a communicator. If `since` has begun on all of them, the waiting since then is charged
 * at `node`, as that of so many calls (0: not at all). cost_share: the part of its time that this rank gave to probes
 * so far. False: MPI refused. */
bool quipu_mpi_probe(const struct quipu_mpi_since *since, struct quipu_node *node, MPI_Comm comm, uint64_t weight,
                     double cost_share, struct quipu_mpi_probe *probe);
/* This rank is synchronized with the others of the communicator since this probe. cost: ticks of a probe for which all
 * are there. */
void quipu_mpi_begin_since(struct quipu_mpi_since *since, const struct quipu_mpi_probe *probe, uint64_t cost);
/* What the clocks of all call paths show (critical.c), as one number that differs if one of them does. */
uint64_t quipu_mpi_clocks(void);
/* Exchanges the clocks with the other ranks of the communicator, at a probe that stands for so many calls. False: MPI
 * refused. */
bool quipu_mpi_set_clocks(MPI_Comm comm, int ranks, uint64_t weight);
/* Tells the runtime what this rank has waited for. */
void quipu_mpi_tell_awaited(void);
#else /* ranks are in one process, and so is all that they did */
/* Which ranks wait in a collective operation, and for which ranks. */
enum quipu_mpi_awaited { QUIPU_MPI_AWAITS_ALL, QUIPU_MPI_AWAITS_ROOT, QUIPU_MPI_ROOT_AWAITS };
/* What a rank did until it came to an operation, since all ranks were synchronized last. */
struct quipu_mpi_arrival {
    uint64_t at; /* ns */
    struct quipu_node *operation;
    struct quipu_mpi_rank *rank; /* NULL: not known */
    struct quipu_spent *spent;
    size_t paths;
    double waited; /* ns, until `at` */
};
/* The running rank comes now. */
void quipu_mpi_note_arrival(struct quipu_mpi_arrival *arrival);
void quipu_mpi_forget_arrival(struct quipu_mpi_arrival *arrival);
/* All ranks of a communicator have arrived: charges the waiting. all: there are no others. root: -1 if there is none.
 * Returns whether all ranks are synchronized by it. */
bool quipu_mpi_account(struct quipu_mpi_arrival *arrivals, int ranks, bool all, enum quipu_mpi_awaited awaited,
                       int root);
/* A rank waited for another one in a message. */
void quipu_mpi_account_message(const struct quipu_mpi_arrival *late, const struct quipu_mpi_arrival *waiting);
/* The running rank waited for nobody in particular. */
void quipu_mpi_waited_unaccounted(uint64_t ns);
/* All ranks go on at this moment, the running one, too. */
void quipu_mpi_synchronized(struct quipu_mpi_rank *running);
/* Blocks of call paths, by their places (quipu_executed). */
struct quipu_mpi_blocks {
    size_t room;
    uint64_t *of;
};
/* The running rank comes to an operation: with those that it has waited for it has so many blocks. reached: gets them
 * where they are more, if others wait for this rank. */
void quipu_mpi_reach(struct quipu_mpi_blocks *reached);
/* The running rank goes on from the operation that it came to when it has as many blocks. */
void quipu_mpi_go_on_from(const struct quipu_mpi_blocks *reached);
void quipu_mpi_end_probes(void);
#endif

#endif
