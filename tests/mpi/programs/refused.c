/* SPDX-License-Identifier: Apache-2.0 */
/* Receives that MPI refuses: how often the error handler of the communicator is called for each, which is printed. */
#include <mpi.h>
#include <stdio.h>

enum { LONG = 1 << 20 };
static char buffer[LONG], message[LONG];
static int calls;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    calls++;
}

static void refused(const char *what, int source, int tag, int count, MPI_Comm comm) {
    calls = 0;
    const int failed = MPI_Recv(buffer, count, MPI_BYTE, source, tag, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS;
    printf("%s %d %d\n", what, failed, calls);
}

int main(int argc, char **argv) {
    MPI_Errhandler own;
    MPI_Comm copy;
    MPI_Request request;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_set_errhandler(copy, own);
    refused("rank", 1000, 0, LONG, MPI_COMM_WORLD);
    refused("tag", 0, -1000, LONG, copy);
    refused("rank-of-copy", 3, 0, LONG, copy);
    refused("communicator", 0, 0, LONG, MPI_COMM_NULL);
    MPI_Isend(message, LONG, MPI_BYTE, 0, 5, copy, &request);
    refused("truncated", 0, 5, LONG / 2, copy);
    MPI_Finalize();
    return 0;
}
