/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that all communicate at once: handles come again on other threads as soon as they are free. */
#include <pthread.h>

#include "expect.h"

enum { THREADS = 4, ROUNDS = 300, WINDOW = 5 };

static int rank, ranks;

static void *exchange(void *argument) {
    MPI_Comm comm = *(MPI_Comm *)argument;
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    int in[WINDOW][8], out[8] = {0}, index, indices[2 * WINDOW];
    MPI_Request requests[2 * WINDOW];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WINDOW; i++) {
            MPI_Irecv(in[i], 8, MPI_INT, left, i, comm, &requests[i]);
            MPI_Isend(out, 1 + (round + i) % 8, MPI_INT, right, i, comm, &requests[WINDOW + i]);
        }
        if (round % 3 == 0)
            MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; round % 3 == 1 && i < 2 * WINDOW; i++)
            MPI_Waitany(2 * WINDOW, requests, &index, MPI_STATUS_IGNORE);
        for (int done = 0, some = 0; round % 3 == 2 && done < 2 * WINDOW; done += some)
            MPI_Waitsome(2 * WINDOW, requests, &some, indices, MPI_STATUSES_IGNORE);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t threads[THREADS];
    MPI_Comm comms[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE)
        fail("this MPI has no MPI_THREAD_MULTIPLE");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, exchange, &comms[i]) != 0)
            fail("cannot start a thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    long long bytes = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < WINDOW; i++)
            bytes += 4LL * (1 + (round + i) % 8);
    expect("MPI_Isend", THREADS * bytes, 0, THREADS * ROUNDS * WINDOW, 0, ranks);
    expect("MPI_Irecv", 0, THREADS * bytes, 0, THREADS * ROUNDS * WINDOW, ranks);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&comms[i]);
    write_expectations(argv[1]);
    MPI_Finalize();
    return 0;
}
