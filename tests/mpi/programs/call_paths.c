/* SPDX-License-Identifier: Apache-2.0 */
/* Who is credited: requests posted, started, completed and freed in different regions. Linked with the libraries. */
#include <mpi.h>
#include <quipu.h>
#include <stddef.h>

static struct quipu_region post = {.name = "post", .kind = QUIPU_USER};
static struct quipu_region complete = {.name = "complete", .kind = QUIPU_USER};
static struct quipu_region prepare = {.name = "prepare", .kind = QUIPU_USER};
static struct quipu_region start = {.name = "start", .kind = QUIPU_USER};

int main(int argc, char **argv) {
    int rank, ranks;
    double in[10], out[10] = {0};
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    struct quipu_frame *frame = quipu_enter(&post);
    MPI_Irecv(in, 10, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 10, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
    quipu_exit(frame);
    frame = quipu_enter(&complete);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    quipu_exit(frame);

    frame = quipu_enter(&prepare);
    MPI_Recv_init(in, 10, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 5, MPI_DOUBLE, right, 2, MPI_COMM_WORLD, &requests[1]);
    quipu_exit(frame);
    for (int i = 0; i < 3; i++) {
        frame = quipu_enter(&start);
        MPI_Startall(2, requests);
        quipu_exit(frame);
        frame = quipu_enter(&complete);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        quipu_exit(frame);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Finalize();
    return 0;
}
