/* SPDX-License-Identifier: Apache-2.0 */
/* Work that takes the time of its effort: in a function with a hook, in one without that calls MPI in between (a filter
 * may leave it out), in recursion, and before MPI begins. Rank 0 works, the others wait for it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static volatile double result;

__attribute__((noinline)) static void work(int n) {
    for (int i = 0; i < n; i++)
        result += i;
}

/* Effort before, between and after calls of MPI, all of one visit. */
__attribute__((noinline)) static void phases(int n) {
    for (int phase = 0; phase < 3; phase++) {
        for (int i = 0; i < n; i++)
            result += i;
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Comes back to itself by another function, after MPI. */
__attribute__((noinline)) static void deeper(int n, int depth);
__attribute__((noinline)) static void between(int n, int depth) {
    deeper(n, depth - 1);
    for (int i = 0; i < n; i++)
        result += i;
}
static void deeper(int n, int depth) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (depth > 0)
        between(n, depth);
    for (int i = 0; i < n; i++)
        result += i;
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 1000;
    int rank;
    work(n);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const double begin = MPI_Wtime();
    work(n);
    const double took = MPI_Wtime() - begin;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        work(10 * n);
    MPI_Barrier(MPI_COMM_WORLD);
    double *values = calloc(n, sizeof *values);
    MPI_Bcast(values, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    free(values);
    phases(n);
    deeper(n, 3);
    if (rank == 0)
        printf("took %.9f\n", took);
    MPI_Finalize();
    return 0;
}
