/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of MPI_COMM_WORLD a rank of another communicator or of a window is. */
#ifndef QUIPU_MPI_WORLD_RANK_H
#define QUIPU_MPI_WORLD_RANK_H

#include "group.h"

#include <mpi.h>

/* No rank of this world: of another one that was spawned or joined. */
enum { QUIPU_MPI_ELSEWHERE = -1 };

/* What a rank of a communicator or window is in MPI_COMM_WORLD; of an inter-communicator in its remote group. */
static inline int quipu_mpi_world_rank_in_comm(MPI_Comm comm, int rank);
int quipu_mpi_world_rank_in_win(MPI_Win win, int rank);
/* Before a communicator or window is freed: its handle may come again and mean others. */
void quipu_mpi_handle_ends(void);

int quipu_mpi_ask_world_rank(MPI_Comm comm, int rank);

static inline int quipu_mpi_world_rank_in_comm(MPI_Comm comm, int rank) {
    if (__builtin_expect(comm == MPI_COMM_WORLD, 1))
        return rank;
    return comm == MPI_COMM_SELF && quipu_mpi_world.all > 0 ? quipu_mpi_world.rank
                                                            : quipu_mpi_ask_world_rank(comm, rank);
}

#endif
