/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 sends 30 messages of 80 bytes to rank 1; each rank prints what a site's library, if there is one, has seen. */
#include <mpi.h>
#include <stdio.h>

#ifdef OWN
#include "site.c"
#endif

static __attribute__((noinline)) void round_of(int rank, double *data) {
    if (rank == 0)
        MPI_Send(data, 10, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Recv(data, 10, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    double data[10] = {0};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 30; i++)
        round_of(rank, data);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
