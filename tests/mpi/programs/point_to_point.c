/* SPDX-License-Identifier: Apache-2.0 */
/* Every point-to-point operation around a ring; message lengths differ by rank, receive buffers are larger. */
#include "expect.h"

enum { TAG = 5, ROOM = 64, ROUNDS = 3 };

static int rank, ranks, left, right;
static int mine, lefts; /* elements that this rank sends, and that its left neighbour sends */
static double out[2 * ROOM], in[2 * ROOM];

typedef int send_function(const void *, amount, MPI_Datatype, int, int, MPI_Comm);
typedef int isend_function(const void *, amount, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static MPI_Request receive_from_left(void) {
    MPI_Request request;
    MPI_Irecv(in, ROOM, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &request);
    expect("MPI_Irecv", 0, 8LL * lefts, 0, 1, ranks);
    return request;
}

static void blocking_sends(void) {
    const char *names[] = {"MPI_Send", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend"};
    send_function *functions[] = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
    for (int i = 0; i < 4; i++) {
        MPI_Request request = receive_from_left();
        MPI_Barrier(MPI_COMM_WORLD); /* a ready send needs the receive to be there */
        expect("MPI_Barrier", 0, 0, 0, 0, ranks);
        functions[i](out, mine, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD);
        expect(names[i], 8LL * mine, 0, 1, 0, ranks);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void nonblocking_sends(void) {
    const char *names[] = {"MPI_Isend", "MPI_Ibsend", "MPI_Issend", "MPI_Irsend"};
    isend_function *functions[] = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
    for (int i = 0; i < 4; i++) {
        MPI_Request requests[2] = {receive_from_left(), MPI_REQUEST_NULL};
        MPI_Barrier(MPI_COMM_WORLD);
        functions[i](out, mine, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &requests[1]);
        expect(names[i], 8LL * mine, 0, 1, 0, ranks);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static MPI_Request send_to_right(int count, MPI_Datatype type, long long bytes) {
    MPI_Request request;
    MPI_Isend(out, count, type, right, TAG, MPI_COMM_WORLD, &request);
    expect("MPI_Isend", bytes, 0, 1, 0, ranks);
    return request;
}

static void receives(void) {
    MPI_Status status;
    MPI_Request request = send_to_right(mine, MPI_DOUBLE, 8LL * mine);
    MPI_Recv(in, ROOM, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    expect("MPI_Recv", 0, 8LL * lefts, 0, 1, ranks);
    int count = 0;
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    if (count != lefts || status.MPI_SOURCE != left)
        fail("the status is not what it should be");
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    MPI_Datatype spread; /* every second double: gaps do not count */
    MPI_Type_vector(5, 1, 2, MPI_DOUBLE, &spread);
    MPI_Type_commit(&spread);
    request = send_to_right(2, spread, 2 * 5 * 8);
    MPI_Recv(in, ROOM, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Recv", 0, 2 * 5 * 8, 0, 1, ranks);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&spread);

    request = send_to_right(0, MPI_DOUBLE, 0); /* an empty message is a message */
    MPI_Recv(in, ROOM, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Recv", 0, 0, 0, 1, ranks);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void both_ways(void) {
    MPI_Sendrecv(out, mine, MPI_DOUBLE, right, TAG, in, ROOM, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Sendrecv", 8LL * mine, 8LL * lefts, 1, 1, ranks);
    /* A line instead of a ring: the ends have one neighbour. */
    const int next = rank == ranks - 1 ? MPI_PROC_NULL : right, previous = rank == 0 ? MPI_PROC_NULL : left;
    MPI_Sendrecv(out, mine, MPI_DOUBLE, next, TAG, in, ROOM, MPI_DOUBLE, previous, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    expect("MPI_Sendrecv", rank == ranks - 1 ? 0 : 8LL * mine, rank == 0 ? 0 : 8LL * lefts, rank != ranks - 1,
           rank != 0, ranks);
    MPI_Sendrecv_replace(in, 6, MPI_INT, right, TAG, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Sendrecv_replace", 24, 24, 1, 1, ranks);
}

#ifdef HAS_MPI_4
static void both_ways_at_once(void) {
    MPI_Request request;
    /* The buffer is as long as the message: MPICH tells nothing of what came. */
    MPI_Isendrecv(out, mine, MPI_DOUBLE, right, TAG, in, lefts, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("MPI_Isendrecv", 8LL * mine, 8LL * lefts, 1, 1, ranks);
    const int next = rank == ranks - 1 ? MPI_PROC_NULL : right, previous = rank == 0 ? MPI_PROC_NULL : left;
    const int before = rank == 0 ? 0 : lefts;
    MPI_Isendrecv(out, mine, MPI_DOUBLE, next, TAG, in, lefts, MPI_DOUBLE, previous, TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("MPI_Isendrecv", rank == ranks - 1 ? 0 : 8LL * mine, 8LL * before, rank != ranks - 1, rank != 0, ranks);
    MPI_Isendrecv_replace(in, 6, MPI_INT, right, TAG, left, TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("MPI_Isendrecv_replace", 24, 24, 1, 1, ranks);
}

/* Four parts are sent, two of twice the length are received. */
static void in_parts(void) {
    int parts[] = {0, 3};
    MPI_Request requests[2];
    MPI_Psend_init(out, 4, mine, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, 2, 2 * lefts, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    expect("MPI_Psend_init", 0, 0, 0, 0, 0);
    expect("MPI_Precv_init", 0, 0, 0, 0, 0);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Startall(2, requests);
        expect("MPI_Startall", 8LL * 4 * mine, 8LL * 4 * lefts, 1, 1, ranks);
        MPI_Pready_list(2, parts, requests[0]);
        MPI_Pready_range(1, 1, requests[0]);
        MPI_Pready(2, requests[0]);
        for (int there = 0; !there;)
            MPI_Parrived(requests[1], 1, &there);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}
#endif

static void nobody(void) {
    MPI_Request requests[2];
    MPI_Send(out, 9, MPI_DOUBLE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    MPI_Recv(in, 9, MPI_DOUBLE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(out, 9, MPI_DOUBLE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in, 9, MPI_DOUBLE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Message message;
    MPI_Mprobe(MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in, 9, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
}

static void matched(void) {
    MPI_Status status;
    MPI_Message message;
    int flag = 0;
    MPI_Request request = send_to_right(mine, MPI_DOUBLE, 8LL * mine), receive;
    MPI_Probe(left, TAG, MPI_COMM_WORLD, &status);
    expect("MPI_Probe", 0, 0, 0, 0, ranks);
    MPI_Mprobe(left, TAG, MPI_COMM_WORLD, &message, &status);
    expect("MPI_Mprobe", 0, 0, 0, 0, ranks);
    MPI_Mrecv(in, ROOM, MPI_DOUBLE, &message, MPI_STATUS_IGNORE);
    expect("MPI_Mrecv", 0, 8LL * lefts, 0, 1, 0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    request = send_to_right(mine, MPI_DOUBLE, 8LL * mine);
    while (!flag)
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, &status);
    expect("MPI_Iprobe", 0, 0, 0, 0, ranks);
    for (flag = 0; !flag;)
        MPI_Improbe(left, TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    expect("MPI_Improbe", 0, 0, 0, 0, ranks);
    MPI_Imrecv(in, ROOM, MPI_DOUBLE, &message, &receive);
    expect("MPI_Imrecv", 0, 8LL * lefts, 0, 1, 0);
    MPI_Wait(&receive, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void persistent(void) {
    MPI_Request requests[2];
    MPI_Recv_init(in, ROOM, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &requests[0]);
    isend_function *functions[] = {MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init};
    expect("MPI_Recv_init", 0, 0, 0, 0, 0);
    const char *names[] = {"MPI_Send_init", "MPI_Bsend_init", "MPI_Ssend_init", "MPI_Rsend_init"};
    for (int i = 0; i < 4; i++) {
        functions[i](out, mine, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &requests[1]);
        expect(names[i], 0, 0, 0, 0, 0);
        for (int round = 0; round < ROUNDS; round++) {
            if (i == 3) { /* the receive first */
                MPI_Start(&requests[0]);
                MPI_Barrier(MPI_COMM_WORLD);
                MPI_Start(&requests[1]);
                expect("MPI_Start", 8LL * mine, 8LL * lefts, 1, 1, ranks);
            } else {
                MPI_Startall(2, requests);
                expect("MPI_Startall", 8LL * mine, 8LL * lefts, 1, 1, ranks);
            }
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* inactive requests: nothing more */
        }
        MPI_Request_free(&requests[1]);
    }
    MPI_Request_free(&requests[0]);
}

static void between_groups(void) {
    if (ranks < 2)
        return;
    MPI_Comm group, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, 1 - rank % 2, TAG, &inter);
    int local;
    MPI_Comm_rank(inter, &local);
    if (local == 0) {
        MPI_Sendrecv(out, mine, MPI_DOUBLE, 0, TAG, in, ROOM, MPI_DOUBLE, 0, TAG, inter, MPI_STATUS_IGNORE);
        expect("MPI_Sendrecv", 8LL * mine, 8LL * (rank == 0 ? 4 : 3), 1, 1, ranks);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&group);
}

int main(int argc, char **argv) {
    static char buffer[1 << 16];
    int size = sizeof buffer;
    void *detached = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    right = (rank + 1) % ranks;
    left = (rank + ranks - 1) % ranks;
    mine = 3 + rank;
    lefts = 3 + left;
    MPI_Buffer_attach(buffer, size);
    blocking_sends();
    nonblocking_sends();
    receives();
    both_ways();
    nobody();
    matched();
    persistent();
#ifdef HAS_MPI_4
    both_ways_at_once();
    in_parts();
#endif
    between_groups();
    MPI_Buffer_detach(&detached, &size);
    write_expectations(argv[1]);
    MPI_Finalize();
    return 0;
}
