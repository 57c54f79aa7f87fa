/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of waiting in simulated seconds: each unit of work takes a millisecond (simulated by effort). Rank 0 is late,
 * rank 1 waits for it, ranks 2 and 3 wait for rank 1 and, in part, for rank 0 through it. */
#include <mpi.h>

static volatile double sink;

static void __attribute__((noinline)) work(int units) {
    for (int unit = 0; unit < units; unit++)
        for (int i = 0; i < 1000; i++)
            sink = sink * 0.5 + i;
}

static void __attribute__((noinline)) first(int units) { work(units); }
static void __attribute__((noinline)) second(int units) { work(units); }

int main(int argc, char **argv) {
    int rank, value = 0;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
    if (rank == 0) {
        first(40);
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        second(20);
        MPI_Send(&value, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
    } else if (rank == 2) {
        MPI_Request request;
        MPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank >= 2)
        MPI_Barrier(half);
    MPI_Finalize();
    return 0;
}
