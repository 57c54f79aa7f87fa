/* SPDX-License-Identifier: Apache-2.0 */
/* Collective operations that are refused on some ranks; the error handler leaves them by longjmp, and they are called
 * again with the right arguments. What comes after is not under what was left. */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>

enum { ROUNDS = 40 };

static jmp_buf before_error;

static void jump(MPI_Comm *comm, int *error, ...) {
    (void)comm, (void)error;
    longjmp(before_error, 1);
}

int main(int argc, char **argv) {
    int rank, ranks;
    static volatile int refused;
    static long sum;
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (volatile int round = 0; round < ROUNDS; round++) {
        int value = rank + 1, all = 0;
        const int wrong = round % (ranks + 1) == rank || round % 7 == 0;
        refused = setjmp(before_error) != 0;
        MPI_Allreduce(&value, &all, wrong && !refused ? -1 : 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        sum += all;
    }
    if (setjmp(before_error) == 0)
        MPI_Bcast(&rank, -1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (rank == 0)
        printf("%ld\n", sum);
    MPI_Finalize();
    return 0;
}
