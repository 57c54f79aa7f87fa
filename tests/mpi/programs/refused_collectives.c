/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations that are refused on some ranks, which call them again with the right arguments. */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 40 };

int main(int argc, char **argv) {
    int rank, ranks, refused = 0;
    long sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < ROUNDS; round++) {
        int value = rank + 1, all = 0;
        const int wrong = round % (ranks + 1) == rank || round % 7 == 0;
        while (MPI_Allreduce(&value, &all, wrong && !refused ? -1 : 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
            refused = 1;
        refused = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        sum += all;
    }
    if (rank == 0)
        printf("%ld\n", sum);
    MPI_Finalize();
    return 0;
}
