/* SPDX-License-Identifier: Apache-2.0 */
/* Time per operation of small MPI calls, for mpi_overhead.py: prints one JSON object on rank 0.
 *
 *   pair       MPI_Send and MPI_Recv of 8 bytes within one process: nothing is waited for, every added cost shows
 *   pingpong   one round trip of 8 bytes between ranks 0 and 1: two calls on each side
 *   allreduce  MPI_Allreduce of 8 bytes over all ranks
 *   stamped    the same between two time stamps: what is least for a tool that times every call
 *   least      the same in a wrapper that keeps no call paths: two time stamps, and what they and the call add to
 *              numbers of the thread
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <time.h>
#endif

enum { BATCHES = 200, OPERATIONS = 500, WARM = 20 };

static int rank;

static void pair(void) {
    long sent = 1, received = 0;
    MPI_Send(&sent, 1, MPI_LONG, 0, 0, MPI_COMM_SELF);
    MPI_Recv(&received, 1, MPI_LONG, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void pingpong(void) {
    long value = 1;
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(&value, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&value, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    }
}

static void allreduce(void) {
    double value = 1, sum;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static unsigned long long stamp(void) {
#if defined(__x86_64__)
    return __rdtsc();
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
#endif
}

static volatile unsigned long long elapsed;

static void stamped(void) {
    const unsigned long long begin = stamp();
    allreduce();
    elapsed = elapsed + (stamp() - begin);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static _Thread_local struct {
    unsigned long long last, caller, time, visits, sent, received, messages_sent, messages_received;
} kept __attribute__((tls_model("initial-exec")));

__attribute__((noinline)) static int wrapper(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                                             MPI_Comm comm) {
    const unsigned long long begin = stamp(), bytes = sizeof(double) * (unsigned long long)count;
    kept.caller += begin - kept.last;
    const int result = PMPI_Allreduce(from, to, count, type, op, comm);
    const unsigned long long end = kept.last = stamp();
    kept.time += end - begin;
    kept.visits++;
    kept.sent += bytes;
    kept.received += bytes;
    kept.messages_sent++;
    kept.messages_received++;
    return result;
}

static void least(void) {
    double value = 1, sum;
    wrapper(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Median over batches of the nanoseconds per operation: a batch that another process disturbed does not count. */
static double nanoseconds(void (*operation)(void)) {
    double batch[BATCHES];
    for (int i = -WARM; i < BATCHES; i++) {
        const double start = MPI_Wtime();
        for (int j = 0; j < OPERATIONS; j++)
            operation();
        if (i >= 0)
            batch[i] = (MPI_Wtime() - start) / OPERATIONS * 1e9;
    }
    qsort(batch, BATCHES, sizeof batch[0], ascending);
    return batch[BATCHES / 2];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const double self = nanoseconds(pair), between = nanoseconds(pingpong), all = nanoseconds(allreduce);
    const double timed = nanoseconds(stamped), wrapped = nanoseconds(least);
    if (rank == 0)
        printf("{\"pair\": %.2f, \"pingpong\": %.2f, \"allreduce\": %.2f, \"stamped\": %.2f, \"least\": %.2f}\n", self,
               between, all, timed, wrapped);
    MPI_Finalize();
    return 0;
}
