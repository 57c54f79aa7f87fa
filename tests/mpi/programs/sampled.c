/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that work and meet: rank r has (r + 1) * 60 ms of processor time in work.
 *
 * Where that is permitted, nobody else gets their processors: of a thread that hardly ever runs for a tick, few samples
 * by timers are left.
 */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

__attribute__((noinline)) static void work(double how_long) {
    volatile double x = 1;
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const double begin = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    do {
        for (int i = 0; i < 20000; i++)
            x = x * 1.0000001 + 1e-9;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec < begin + how_long);
}

int main(int argc, char **argv) {
    int rank, size, sum = 0;
    const struct sched_param lowest = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &lowest) != 0)
        perror("without real-time priority");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 3; round++) {
        work(0.02 * (rank + 1));
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < 100; i++) {
            const int to = (rank + 1) % size, from = (rank + size - 1) % size;
            MPI_Sendrecv(&rank, 1, MPI_INT, to, i, &sum, 1, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    return sum != (rank + size - 1) % size;
}
