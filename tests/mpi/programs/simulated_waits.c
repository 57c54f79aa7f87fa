/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 2 comes LATE seconds of simulated time late to each operation; all are together again before the next one. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { LATE_US = 250000, LONG = 1 << 26, SHORT = 8 };

static int rank;
static char *buffer;

static void late(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 2)
        usleep(LATE_US);
}

static void point_to_point(void) {
    MPI_Request pending[2];
    late(); /* late sender, then a long message for which both are there: its transfer is no waiting */
    if (rank == 0) {
        MPI_Recv(buffer, SHORT, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buffer, LONG, MPI_CHAR, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 2) {
        MPI_Send(buffer, SHORT, MPI_CHAR, 0, 7, MPI_COMM_WORLD);
        MPI_Ssend(buffer, LONG, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
    late(); /* late receiver: of a message that the sender need not wait for, and of one that it must */
    if (rank == 1)
        MPI_Send(buffer, SHORT, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    if (rank == 1)
        MPI_Send(buffer, SHORT, MPI_CHAR, 2, 0, MPI_COMM_WORLD);
    else if (rank == 0)
        MPI_Send(buffer, LONG, MPI_CHAR, 2, 0, MPI_COMM_WORLD);
    else
        for (int from = 0; from < 2; from++)
            MPI_Recv(buffer, LONG, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    late(); /* one of two requests */
    if (rank == 0) {
        for (int i = 0; i < 2; i++)
            MPI_Irecv(buffer + i * SHORT, SHORT, MPI_CHAR, 2 - i, 0, MPI_COMM_WORLD, &pending[i]);
        MPI_Waitall(2, pending, MPI_STATUSES_IGNORE);
    } else {
        MPI_Isend(buffer, SHORT, MPI_CHAR, 0, 0, MPI_COMM_WORLD, pending);
        MPI_Wait(pending, MPI_STATUS_IGNORE);
    }
    late();
    if (rank != 1)
        MPI_Sendrecv(buffer, SHORT, MPI_CHAR, 2 - rank, 3, buffer + LONG / 2, SHORT, MPI_CHAR, 2 - rank, 3,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++) { /* a persistent request, twice */
        static MPI_Request again;
        late();
        if (rank == 2)
            MPI_Send(buffer, SHORT, MPI_CHAR, 0, i, MPI_COMM_WORLD);
        if (rank != 0)
            continue;
        if (i == 0)
            MPI_Recv_init(buffer, SHORT, MPI_CHAR, 2, MPI_ANY_TAG, MPI_COMM_WORLD, &again);
        MPI_Start(&again);
        MPI_Waitany(1, &again, &(int){0}, MPI_STATUS_IGNORE);
        if (i == 1)
            MPI_Request_free(&again);
    }
}

static void collective(void) {
    int one = 1, sum = 0, *all = calloc(3, sizeof *all);
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 1, rank, &pair); /* 0 and 2 */
    late();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    late();
    MPI_Bcast(&one, 1, MPI_INT, 2, MPI_COMM_WORLD); /* all need the late one */
    late();
    MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD); /* nobody does */
    late();
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); /* only the root does */
    late();
    MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, pair);
    MPI_Comm_free(&pair);
    free(all);
}

static void one_sided(void) {
    MPI_Win window;
    MPI_Win_create(buffer, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    late();
    if (rank == 0)
        MPI_Put(buffer, SHORT, MPI_CHAR, 1, LONG / 2, SHORT, MPI_CHAR, window);
    MPI_Win_fence(0, window); /* all wait for the late one */
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    buffer = calloc(1, LONG);
    point_to_point();
    collective();
    one_sided();
    free(buffer);
    MPI_Finalize();
    return 0;
}
