/* SPDX-License-Identifier: Apache-2.0 */
/* Each rank calls other functions, or calls them another number of times, before and after MPI_Finalize. The first
 * argument is the mode: "plain", "again" (a function is called both before and after), "quit" (rank 1 ends by _exit),
 * "empty" (rank 1 clears its environment). */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With the compiler wrapper, these functions have a hook, no hook (tiny), and counters that differ between ranks. */
static int tiny(int i) { return i % 3; }

__attribute__((noinline)) static int work(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        if (tiny(i * i) == 1)
            sum += i;
    return sum;
}

__attribute__((noinline)) static int late_work(int n) { return n > 1 ? work(n / 2) + work(n) : n; }

static void *other_thread(void *nothing) {
    int flag;
    MPI_Initialized(&flag);
    work(5);
    return nothing;
}

int main(int argc, char **argv) {
    int level, rank, size, flag, version, revision;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < rank; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char name[MPI_MAX_PROCESSOR_NAME], *bytes = calloc(1, 1000 * (size_t)size);
    int length;
    if (rank % 2)
        MPI_Get_processor_name(name, &length);
    if (rank == 0)
        MPI_Wtime();
    if (rank == 0)
        for (int to = 1; to < size; to++)
            MPI_Send(bytes, 1000 * to, MPI_BYTE, to, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(bytes, 1000 * rank, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int sum = work(100 * rank);
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    const int again = argc > 1 && strcmp(argv[1], "again") == 0;
    if (again)
        MPI_Get_version(&version, &revision);
    if (argc > 1 && strcmp(argv[1], "empty") == 0 && rank == 1)
        clearenv();
    MPI_Finalize();
    for (int i = 0; i <= rank; i++)
        MPI_Finalized(&flag);
    if (again)
        MPI_Get_version(&version, &revision);
    if (argc > 1 && strcmp(argv[1], "quit") == 0 && rank == 1)
        _exit(0);
    sum += late_work(rank);
    free(bytes);
    return sum == -1;
}
