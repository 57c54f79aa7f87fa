/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 1 is late to one operation and rank 0 to another, both in work(), which takes both as long in the end. The late
 * rank works until the other one has been waiting for LATE seconds, as a file says that both have mapped. Then
 * operations in which nobody is charged: of an inter-communicator, of a duplicate that is freed, and one that does not
 * block. */
#include "shared_file.h"

#include <mpi.h>

#define LATE 0.25

enum { OPERATIONS = 2 };

static int rank;
static volatile double (*arrived)[2]; /* at each operation, of each rank */

static void __attribute__((noinline)) work(int operation, int late) {
    while (rank == late && (arrived[operation][1 - rank] == 0 || now() - arrived[operation][1 - rank] < LATE))
        ;
    arrived[operation][rank] = now();
}

static void __attribute__((noinline)) first(void) {
    work(0, 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void __attribute__((noinline)) second(void) {
    int value = 1;
    work(1, 0);
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    arrived = map_file("arrivals", OPERATIONS * sizeof *arrived, getenv("QUIPU_DIR"));
    MPI_Barrier(MPI_COMM_WORLD);
    first();
    second();
    MPI_Comm alone, pair, copy;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    MPI_Intercomm_create(alone, 0, MPI_COMM_WORLD, 1 - rank, 7, &pair);
    int mine = rank, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, pair);
    for (int i = 0; i < 40; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        for (int turn = 0; turn < 3; turn++)
            MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT, MPI_MAX, copy);
        MPI_Request request;
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, copy, &request);
        MPI_Bcast(&mine, 1, MPI_INT, i % 2, copy);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Comm_free(&copy);
    }
    MPI_Comm_free(&pair);
    MPI_Comm_free(&alone);
    MPI_Finalize();
    return 0;
}
