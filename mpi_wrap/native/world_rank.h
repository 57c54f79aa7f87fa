/* SPDX-License-Identifier: Apache-2.0 */
/* Translates ranks of other communicators and windows to ranks of MPI_COMM_WORLD. */
#ifndef QUIPU_MPI_WORLD_RANK_H
#define QUIPU_MPI_WORLD_RANK_H

#include "group.h"

#include <mpi.h>

/* A rank of another MPI_COMM_WORLD, which was spawned or connected. */
enum { QUIPU_MPI_ELSEWHERE = -1 };

/* Returns the rank in MPI_COMM_WORLD of a rank of a communicator or window; in an inter-communicator, of a rank of its
 * remote group. */
static inline int quipu_mpi_world_rank_in_comm(MPI_Comm comm, int rank);
int quipu_mpi_world_rank_in_win(MPI_Win win, int rank);
/* Runs before a communicator or window is freed, because MPI may reuse its handle. */
void quipu_mpi_handle_ends(void);

int quipu_mpi_ask_world_rank(MPI_Comm comm, int rank);

static inline int quipu_mpi_world_rank_in_comm(MPI_Comm comm, int rank) {
    if (__builtin_expect(comm == MPI_COMM_WORLD, 1))
        return rank;
    return comm == MPI_COMM_SELF && quipu_mpi_world.all > 0 ? quipu_mpi_world.rank
                                                            : quipu_mpi_ask_world_rank(comm, rank);
}

#endif
