/* SPDX-License-Identifier: Apache-2.0 */
/* Translates ranks of communicators and windows to ranks of MPI_COMM_WORLD. */
#ifndef QUIPU_MPI_WORLD_RANK_H
#define QUIPU_MPI_WORLD_RANK_H

#include "group.h"

#include <mpi.h>

/* Stands for a rank that does not belong to MPI_COMM_WORLD: its process was spawned or connected later. */
enum { QUIPU_MPI_ELSEWHERE = -1 };

/* Return the rank in MPI_COMM_WORLD, or QUIPU_MPI_ELSEWHERE. rank: in the communicator or window; in an
 * inter-communicator, in its remote group. */
static inline int quipu_mpi_world_rank_in_comm(MPI_Comm comm, int rank);
int quipu_mpi_world_rank_in_win(MPI_Win win, int rank);
/* Runs before a communicator or window is freed, because MPI may reuse its handle. */
void quipu_mpi_handle_ends(void);

/* Does the same as quipu_mpi_world_rank_in_comm for any communicator but MPI_COMM_WORLD. */
int quipu_mpi_ask_world_rank(MPI_Comm comm, int rank);

static inline int quipu_mpi_world_rank_in_comm(MPI_Comm comm, int rank) {
    if (__builtin_expect(comm == MPI_COMM_WORLD, 1))
        return rank;
    return comm == MPI_COMM_SELF && quipu_mpi_world.all > 0 ? quipu_mpi_world.rank
                                                            : quipu_mpi_ask_world_rank(comm, rank);
}

#endif
