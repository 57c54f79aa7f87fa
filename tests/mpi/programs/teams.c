/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that call MPI in parallel regions, in one after the other and in one within the other, with teams of one
 * thread. */
#include <mpi.h>
#include <stdio.h>

__attribute__((noinline)) static double work(double x) {
    for (int i = 0; i < 10; i++)
        x = 0.5 * x + 1;
    return x;
}

int main(int argc, char **argv) {
    int rank;
    double sum = 0, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 3 + rank % 2; step++) {
#pragma omp parallel num_threads(1)
        {
            sum += work(MPI_Wtime() < 0);
#pragma omp parallel num_threads(1)
            sum += work(MPI_Wtime() < 0);
        }
#pragma omp parallel for num_threads(1) reduction(+ : sum)
        for (int i = 0; i < 5; i++)
            sum += work(i);
    }
#pragma omp parallel num_threads(1)
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sum %.0f\n", all);
    MPI_Finalize();
    return 0;
}
