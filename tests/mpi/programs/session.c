/* SPDX-License-Identifier: Apache-2.0 */
/* A session of MPI 4 and no MPI_Init. */
#include "expect.h"

int main(int argc, char **argv) {
    enum { N = 3 };
    int rank, ranks;
    double out[N] = {1, 2, 3}, in[N];
    MPI_Session session;
    MPI_Group everybody;
    MPI_Comm comm;
    if (argc < 2)
        return 2;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &everybody);
    MPI_Comm_create_from_group(everybody, "session", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&everybody);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Allreduce(out, in, N, MPI_DOUBLE, MPI_SUM, comm);
    expect_collective("MPI_Allreduce", 8 * N, 8 * N, ranks);
    MPI_Sendrecv(out, N, MPI_DOUBLE, right, 0, in, N, MPI_DOUBLE, left, 0, comm, MPI_STATUS_IGNORE);
    expect("MPI_Sendrecv", 8 * N, 8 * N, 1, 1, ranks);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    write_expectations_of(rank, argv[1]);
    return 0;
}
