/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks have more to do in turn, so that all of them have done the same in the end. */
#include <mpi.h>

static volatile double sink;

__attribute__((noinline)) static void work(int units) {
    for (int i = 0; i < units; i++)
        sink = sink + i;
}

__attribute__((noinline)) static void in_turn(int units) { work(units); }

__attribute__((noinline)) static void in_pairs(int units) { work(units); }

__attribute__((noinline)) static void collected(int units) { work(units); }

__attribute__((noinline)) static void once(int units) { work(units); }

int main(int argc, char **argv) {
    int rank, ranks, sum;
    MPI_Comm pair;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
    for (int step = 0; step < 2 * ranks; step++) {
        in_turn(100 + (step % ranks == rank ? 700 : 0));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int step = 0; step < 2; step++) { /* the pairs have the same; only inside of a pair somebody waits */
        in_pairs(step == rank % 2 ? 500 : 0);
        MPI_Barrier(pair);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    collected(rank == 1 ? 600 : 0); /* the root waits for it, and has as much to do afterwards */
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    collected(rank == 0 ? 600 : 0);
    MPI_Barrier(MPI_COMM_WORLD);
    once(rank == 1 ? 300 : 0);
    MPI_Comm_free(&pair);
    MPI_Finalize();
    return 0;
}
