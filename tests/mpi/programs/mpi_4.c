/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of MPI 4: partitioned communication, persistent collectives, exchanges without blocking, large counts. */
#include <mpi.h>

enum { PARTS = 4, PART = 8, ROUNDS = 3 };

static double out[64], in[64];

static void partitioned(int right, int left) {
    MPI_Request requests[2];
    MPI_Psend_init(out, PARTS, PART, MPI_DOUBLE, right, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, PARTS, PART, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < ROUNDS; round++) {
        const int list[] = {2, 3};
        int arrived = 0;
        MPI_Startall(2, requests);
        MPI_Pready_range(0, 1, requests[0]);
        MPI_Pready_list(2, list, requests[0]);
        while (!arrived)
            MPI_Parrived(requests[1], 2, &arrived);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void persistent(void) {
    MPI_Request request;
    MPI_Allreduce_init(out, in, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    partitioned(right, left);
    persistent();
    MPI_Isendrecv(out, 3, MPI_DOUBLE, right, 1, in, 3, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isendrecv_replace(out, 5, MPI_DOUBLE, right, 1, left, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Send_c(out, (MPI_Count)7, MPI_DOUBLE, right, 2, MPI_COMM_WORLD);
    MPI_Recv_c(in, (MPI_Count)7, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
