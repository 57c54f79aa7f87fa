/* SPDX-License-Identifier: Apache-2.0 */
/* A program for any number of ranks whose counts do not depend on the MPI that it runs under. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int my_rank = -1; /* a global variable: ranks that share a process must not share it */

__attribute__((noinline)) static int work(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        if ((i * 2654435761u >> 7) % 3 == 0)
            sum += i;
    return sum;
}

__attribute__((noinline)) static void ring(MPI_Comm comm, int rank, int size) {
    int out[300], in[300] = {0};
    MPI_Request requests[2];
    MPI_Datatype pairs;
    MPI_Type_vector(50, 2, 3, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    for (int i = 0; i < 300; i++)
        out[i] = rank;
    for (int round = 0; round < 5; round++) {
        MPI_Irecv(in, 300, MPI_INT, (rank + size - 1) % size, round, comm, &requests[0]);
        MPI_Isend(out, 1 + rank % 2, pairs, (rank + 1) % size, round, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        work(100 * rank);
    }
    MPI_Sendrecv(out, rank % 7, MPI_DOUBLE, (rank + 1) % size, 9, in, 150, MPI_DOUBLE, (rank + size - 1) % size, 9,
                 comm, MPI_STATUS_IGNORE);
    MPI_Type_free(&pairs);
}

int main(int argc, char **argv) {
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank = my_rank;
    ring(MPI_COMM_WORLD, rank, size);
    for (int i = 0; i < 3; i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, i == 1 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
    int *all = malloc((size_t)size * sizeof *all);
    MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Bcast(all, size, MPI_INT, size - 1, MPI_COMM_WORLD);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    int half_rank, half_size;
    MPI_Comm_rank(half, &half_rank);
    MPI_Comm_size(half, &half_size);
    ring(half, half_rank, half_size);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, half);
    MPI_Comm_free(&half);
    MPI_Barrier(MPI_COMM_WORLD);
    const int mine = my_rank == rank && all[size - 1] == size - 1;
    free(all);
    if (!mine) {
        printf("rank %d lost its memory\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Finalize();
    return 0;
}
