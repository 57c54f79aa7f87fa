/* SPDX-License-Identifier: Apache-2.0 */
/* Measures messages and collective operations for `quipu machine`. Prints lines "operation ranks bytes seconds".
 *
 * The time of a message is half of a round trip between the first and the last rank, which a launcher usually places on
 * different nodes. The time of a collective operation is the time of its slowest rank. The printed time is the lower
 * quartile of 101 repetitions. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* TIMES: number of repetitions. WARM: number of further repetitions at the beginning, which do not count. LONGEST:
 * largest size in bytes. */
enum { TIMES = 101, WARM = 10, LONGEST = 1 << 18 };

/* Sizes in bytes. Messages are measured at more sizes than collective operations, because MPI libraries use different
 * protocols for different sizes of messages. */
static const int message_sizes[] = {8,     64,    256,   512,   1024,  1536,  2048,  3072,   4096,   6144,   8192,
                                    12288, 16384, 24576, 32768, 49152, 65536, 98304, 131072, 196608, LONGEST};
static const int few_sizes[] = {8, 1024, 16384, LONGEST};
static char *out, *in;
static int rank, ranks;

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void round_trip(int bytes) {
    const int peer = rank == 0 ? ranks - 1 : 0;
    if (rank == 0) {
        MPI_Send(out, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == ranks - 1) {
        MPI_Recv(in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    }
}

/* Returns half of the time of the second of two round trips (s) on the first rank, and 0 on the other ranks. The first
 * round trip only synchronizes the two ranks. */
static double ping_pong(int bytes) {
    round_trip(bytes);
    const double begin = MPI_Wtime();
    round_trip(bytes);
    return rank == 0 ? (MPI_Wtime() - begin) / 2 : 0.0;
}

static double broadcast(int bytes) {
    const double begin = MPI_Wtime();
    MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

static double allreduce(int bytes) {
    const double begin = MPI_Wtime();
    MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

static double alltoall(int bytes) {
    const double begin = MPI_Wtime();
    MPI_Alltoall(out, bytes / ranks, MPI_CHAR, in, bytes / ranks, MPI_CHAR, MPI_COMM_WORLD);
    return MPI_Wtime() - begin;
}

static void measure(const char *name, double (*operation)(int), const int *sizes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double times[TIMES], slowest[TIMES];
        for (int number = -WARM; number < TIMES; number++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double seconds = operation(sizes[i]);
            if (number >= 0)
                times[number] = seconds;
        }
        MPI_Reduce(times, slowest, TIMES, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            qsort(slowest, TIMES, sizeof *slowest, ascending);
            printf("%s %d %d %.9e\n", name, ranks, sizes[i], slowest[TIMES / 4]);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = calloc(LONGEST, 1);
    in = calloc(LONGEST, 1);
    if (ranks < 2 || out == NULL || in == NULL) {
        if (rank == 0)
            fprintf(stderr, "quipu machine: a network is measured between at least 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    measure("ping-pong", ping_pong, message_sizes, sizeof message_sizes / sizeof *message_sizes);
    const size_t count = sizeof few_sizes / sizeof *few_sizes;
    measure("MPI_Bcast", broadcast, few_sizes, count);
    measure("MPI_Allreduce", allreduce, few_sizes, count);
    size_t first = 0; /* the first size with at least one byte for each rank */
    while (first < count && few_sizes[first] < ranks)
        first++;
    measure("MPI_Alltoall", alltoall, few_sizes + first, count - first);
    MPI_Finalize();
    return 0;
}
