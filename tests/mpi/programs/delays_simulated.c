/* SPDX-License-Identifier: Apache-2.0 */
/* Delays of known length in simulated seconds: each unit of work takes a millisecond (simulated by effort). The same
 * function is late in all phases. */
#include <mpi.h>

static volatile double sink;

static void __attribute__((noinline)) work(int units) {
    for (int unit = 0; unit < units; unit++)
        for (int i = 0; i < 1000; i++)
            sink = sink * 0.5 + i;
}

int main(int argc, char **argv) {
    int rank, size, value = 0, all[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    work(rank == 1 ? 30 : 10);
    MPI_Barrier(MPI_COMM_WORLD);
    work(rank == 0 ? 50 : 10); /* the root: all others wait */
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    work(rank == 2 ? 40 : 20); /* a leaf: the root waits */
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    work(rank == 2 ? 10 : 30); /* the leaf makes up for it */
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    work(rank == 3 ? 25 : 5); /* rank 2 waits */
    MPI_Barrier(half);
    MPI_Finalize();
    return 0;
}
