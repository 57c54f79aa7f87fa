/* SPDX-License-Identifier: Apache-2.0 */
/* Receives completed by every wait and test function, cancelled and freed ones, more than a few at a time. */
#include "expect.h"

enum { TAG = 6, MANY = 100 };

static int rank, ranks, left, right;
static int in[MANY], out[MANY];
static MPI_Request requests[2 * MANY];

/* `count` messages of one int to the right, as many from the left: receives first, sends behind them. */
static void exchange(int count) {
    for (int i = 0; i < count; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, left, TAG + i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < count; i++)
        MPI_Isend(&out[i], 1, MPI_INT, right, TAG + i, MPI_COMM_WORLD, &requests[count + i]);
    expect("MPI_Irecv", 0, 4LL * count, 0, count, ranks);
    expect("MPI_Isend", 4LL * count, 0, count, 0, ranks);
}

static void completed(const char *name) { expect(name, 0, 0, 0, 0, 0); }

static void one_by_one(void) {
    MPI_Status status;
    exchange(2);
    MPI_Wait(&requests[0], &status);
    if (status.MPI_TAG != TAG)
        fail("the status of MPI_Wait is wrong");
    for (int i = 1; i < 4; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* MPI_REQUEST_NULL */
    completed("MPI_Wait");
    exchange(2);
    for (int i = 0; i < 4; i++)
        for (int flag = 0; !flag;)
            MPI_Test(&requests[i], &flag, i % 2 ? &status : MPI_STATUS_IGNORE);
    completed("MPI_Test");
}

static void any_of_them(int count, MPI_Status *status) {
    int index = 0;
    exchange(count);
    for (int i = 0; i < 2 * count; i++)
        MPI_Waitany(2 * count, requests, &index, status);
    MPI_Waitany(2 * count, requests, &index, status);
    if (index != MPI_UNDEFINED)
        fail("MPI_Waitany found one request too many");
    completed("MPI_Waitany");
    exchange(count);
    for (int done = 0; done < 2 * count;) {
        int flag = 0;
        MPI_Testany(2 * count, requests, &index, &flag, status);
        done += flag;
    }
    completed("MPI_Testany");
}

static void some_of_them(int count, MPI_Status *statuses) {
    static int indices[2 * MANY];
    int completions = 0;
    exchange(count);
    for (int done = 0; done < 2 * count; done += completions)
        MPI_Waitsome(2 * count, requests, &completions, indices, statuses);
    MPI_Waitsome(2 * count, requests, &completions, indices, statuses);
    if (completions != MPI_UNDEFINED)
        fail("MPI_Waitsome found one request too many");
    completed("MPI_Waitsome");
    exchange(count);
    for (int done = 0; done < 2 * count; done += completions)
        MPI_Testsome(2 * count, requests, &completions, indices, statuses);
    completed("MPI_Testsome");
}

static void all_of_them(int count, MPI_Status *statuses) {
    exchange(count);
    MPI_Waitall(2 * count, requests, statuses);
    completed("MPI_Waitall");
    exchange(count);
    for (int flag = 0; !flag;)
        MPI_Testall(2 * count, requests, &flag, statuses);
    completed("MPI_Testall");
}

/* A receive that is cancelled gets nothing; the handle may come again at once. */
static void cancelled(void) {
    int flag = 0;
    MPI_Status status;
    MPI_Irecv(in, MANY, MPI_INT, left, TAG + MANY, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    if (!flag)
        fail("the receive was not cancelled");
    exchange(1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void freed(void) {
    exchange(1);
    for (int flag = 0; !flag;)
        MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Request_free(&requests[0]); /* complete: its bytes are known */
    completed("MPI_Request_free");
    MPI_Request_free(&requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A message that does not fit: the request ends with an error, and counts nothing. */
static void failed(void) {
    MPI_Status statuses[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(&in[0], 1, MPI_INT, left, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, left, TAG + 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(out, 2, MPI_INT, right, TAG, MPI_COMM_WORLD);
    MPI_Send(out, 1, MPI_INT, right, TAG + 1, MPI_COMM_WORLD);
    expect("MPI_Send", 12, 0, 2, 0, ranks);
    expect("MPI_Irecv", 0, 4, 0, 1, ranks);
    if (MPI_Waitall(2, requests, statuses) != MPI_ERR_IN_STATUS)
        fail("a truncated message was no error");
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE); /* MPI may have left it pending */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv) {
    static MPI_Status statuses[2 * MANY];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    right = (rank + 1) % ranks;
    left = (rank + ranks - 1) % ranks;
    one_by_one();
    for (int count = 3; count <= MANY; count += MANY - 3) {
        any_of_them(count, MPI_STATUS_IGNORE);
        any_of_them(count, statuses);
        some_of_them(count, MPI_STATUSES_IGNORE);
        some_of_them(count, statuses);
        all_of_them(count, MPI_STATUSES_IGNORE);
        all_of_them(count, statuses);
    }
    cancelled();
    freed();
    if (ranks > 1) /* a message to oneself is cut off without an error in Open MPI 4.1 */
        failed();
    write_expectations(argv[1]);
    MPI_Finalize();
    return 0;
}
