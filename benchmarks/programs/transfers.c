/* SPDX-License-Identifier: Apache-2.0 */
/* Between two ranks, and from a rank to itself: the seconds of a message from the beginning of its send to the end of
 * its receive, and of MPI_Isend alone. The lower quartile of many, one line for each size. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 400, WARM = 20, LONGEST = 1 << 16 };
static const int sizes[] = {1, 2048, 8192, LONGEST};

static char out[LONGEST], in[LONGEST];
static double whole[TIMES], sends[TIMES];

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quartile(double *values) {
    qsort(values, TIMES, sizeof *values, ascending);
    return values[TIMES / 4];
}

static void measure(int bytes, int rank, int peer) {
    for (int i = -WARM; i < TIMES; i++) {
        MPI_Request request;
        const double begin = MPI_Wtime();
        double sent = begin;
        if (rank != 0 && rank != peer)
            MPI_Recv(in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(out, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &request);
        sent = MPI_Wtime();
        if (rank == 0 || rank == peer)
            MPI_Recv(in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (i < 0)
            continue;
        whole[i] = (MPI_Wtime() - begin) / (rank == peer ? 1 : 2);
        sends[i] = sent - begin;
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int to_itself = 0; to_itself < 2; to_itself++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            measure(sizes[i], rank, to_itself ? rank : 1 - rank);
            if (rank == 0)
                printf("%d %.9f %.9f\n", sizes[i], quartile(whole), quartile(sends));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
