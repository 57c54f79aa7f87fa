/* SPDX-License-Identifier: Apache-2.0 */
/* What this runtime comes before in the C library: handlers of signals, threads, prctl, and OpenMP. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static volatile sig_atomic_t handled;

static void handle(int signal) { handled = signal; }

__attribute__((noinline)) static void add(int *sum) {
    for (int i = 1; i <= 10; i++)
        *sum += i;
}

static void *run(void *sum) {
    add(sum);
    return sum;
}

static void expect(int holds, const char *what) {
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

int main(int argc, char **argv) {
    int rank, sum = 0, of_thread = 0, of_team = 0;
    void *returned = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    struct sigaction action = {0}, before;
    action.sa_handler = handle;
    expect(sigaction(SIGUSR1, &action, &before) == 0 && raise(SIGUSR1) == 0 && handled == SIGUSR1, "sigaction");
    expect(signal(SIGUSR1, SIG_DFL) == handle, "signal");
    handled = 0;

    pthread_t thread;
    expect(pthread_create(&thread, NULL, run, &of_thread) == 0, "pthread_create");
    expect(pthread_join(thread, &returned) == 0 && returned == &of_thread && of_thread == 55, "pthread_join");

    expect(prctl(PR_GET_DUMPABLE) >= 0, "prctl");

#pragma omp parallel num_threads(3) reduction(+ : of_team)
    add(&of_team);
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
        add(&of_team);
#pragma omp barrier
#pragma omp single
#pragma omp task
        add(&sum);
    }
    expect(of_team == 5 * 55 && sum == 55, "OpenMP");

    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sum %d\n", sum);
    MPI_Finalize();
    return 0;
}
