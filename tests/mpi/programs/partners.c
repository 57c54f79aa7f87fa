/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and one-sided operations over communicators whose ranks differ from those of the world. What each rank gave
 * to whom, and got from whom, is written to <folder>/partners-<rank>.tsv. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64, TAG = 3, OFTEN = 20 };

static long long sent[MOST], messages[MOST], fetched[MOST], gets[MOST];
static char buffer[4096], room[4096];
static int rank, ranks;

static void to(int world, int bytes) {
    sent[world] += bytes;
    messages[world]++;
}

/* Each rank of the communicator sends to the next one; world_of: what that is in the world. */
static void around(MPI_Comm comm, int bytes, int world_of_next) {
    int own, size;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(buffer, bytes, MPI_CHAR, (own + 1) % size, TAG, room, sizeof room, MPI_CHAR, (own + size - 1) % size,
                 TAG, comm, MPI_STATUS_IGNORE);
    to(world_of_next, bytes);
}

/* Ranks in reverse, again and again: freed handles come again, and mean another order. */
static void changing_communicators(void) {
    for (int i = 0; i < OFTEN; i++) {
        MPI_Comm comm;
        const int reverse = i % 2;
        MPI_Comm_split(MPI_COMM_WORLD, 0, reverse ? -rank : rank, &comm);
        around(comm, 10 + i, reverse ? (rank + ranks - 1) % ranks : (rank + 1) % ranks);
        around(comm, 1, reverse ? (rank + ranks - 1) % ranks : (rank + 1) % ranks);
        MPI_Comm_free(&comm);
    }
}

#ifdef SMPI_H /* restarted requests stop it at times, also by itself; it has no inter-communicators */
static void persistent(void) {}
static void between_groups(void) {}
#else
static void persistent(void) {
    MPI_Comm copy;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Send_init(buffer, 100, MPI_CHAR, (rank + 1) % ranks, TAG, copy, &requests[0]);
    MPI_Recv_init(room, 100, MPI_CHAR, (rank + ranks - 1) % ranks, TAG, copy, &requests[1]);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        to((rank + 1) % ranks, 100);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Comm_free(&copy);
}

/* The lower half and the others: ranks of an inter-communicator are those of the other side. */
static void between_groups(void) {
    const int half = ranks / 2, low = rank < half;
    MPI_Comm side, both;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &side);
    MPI_Intercomm_create(side, 0, MPI_COMM_WORLD, low ? half : 0, TAG, &both);
    const int own = low ? rank : rank - half, others = low ? ranks - half : half;
    if (own < others) {
        MPI_Request request;
        MPI_Isend(buffer, 7, MPI_CHAR, own, TAG, both, &request);
        to(low ? half + own : own, 7);
        MPI_Recv(room, 7, MPI_CHAR, own, TAG, both, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&both);
    MPI_Comm_free(&side);
}
#endif

static void one_sided(void) {
    char *memory = NULL;
    MPI_Comm comm;
    MPI_Win win;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Win_allocate(sizeof room, 1, MPI_INFO_NULL, comm, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put(buffer, 30, MPI_CHAR, 0, 0, 30, MPI_CHAR, win); /* 0: the last of the world */
    to(ranks - 1, 30);
    MPI_Win_fence(0, win);
    MPI_Get(buffer, 40, MPI_CHAR, ranks - 1, 100, 40, MPI_CHAR, win);
    fetched[0] += 40;
    gets[0]++;
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}

static void oneself_and_nobody(void) {
    MPI_Request request;
    MPI_Irecv(room, 5, MPI_CHAR, 0, TAG, MPI_COMM_SELF, &request);
    MPI_Send(buffer, 5, MPI_CHAR, 0, TAG, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    to(rank, 5);
    MPI_Send(buffer, 5, MPI_CHAR, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    around(MPI_COMM_WORLD, 0, (rank + 1) % ranks); /* an empty message is one, too */
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    changing_communicators();
    persistent();
    if (ranks > 1)
        between_groups();
    one_sided();
    oneself_and_nobody();
    char path[4096];
    snprintf(path, sizeof path, "%s/partners-%d.tsv", argc > 1 ? argv[1] : ".", rank);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < ranks; i++)
        fprintf(file, "%lld\t%lld\t%lld\t%lld\n", sent[i], messages[i], fetched[i], gets[i]);
    fclose(file);
    MPI_Finalize();
    return 0;
}
