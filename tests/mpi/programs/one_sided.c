/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided operations: the origin counts. */
#include "expect.h"

enum { N = 4, ROOM = 64 };

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Win win;
    MPI_Request request;
    static double mine[ROOM], old[ROOM];
    double *memory = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int peer = (rank + 1) % ranks, n = N + rank;
    MPI_Win_allocate(ROOM * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, ROOM * sizeof(double));

    MPI_Win_fence(0, win);
    MPI_Put(mine, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, win);
    expect("MPI_Put", 8LL * n, 0, 1, 0, ranks);
    MPI_Put(mine, n, MPI_DOUBLE, MPI_PROC_NULL, 0, n, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Get(old, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, win);
    expect("MPI_Get", 0, 8LL * n, 0, 1, ranks);
    MPI_Win_fence(0, win);
    MPI_Accumulate(mine, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, MPI_SUM, win);
    expect("MPI_Accumulate", 8LL * n, 0, 1, 0, ranks);
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(mine, n, MPI_DOUBLE, old, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, MPI_SUM, win);
    expect("MPI_Get_accumulate", 8LL * n, 8LL * n, 1, 1, ranks);
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, old, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, MPI_NO_OP, win);
    expect("MPI_Get_accumulate", 0, 8LL * n, 1, 1, ranks);
    MPI_Win_fence(0, win);
    MPI_Fetch_and_op(mine, old, MPI_DOUBLE, peer, 0, MPI_SUM, win);
    expect("MPI_Fetch_and_op", 8, 8, 1, 1, ranks);
    MPI_Win_fence(0, win);
    MPI_Compare_and_swap(mine, old, old + 1, MPI_LONG, peer, 0, win);
    expect("MPI_Compare_and_swap", 16, 8, 1, 1, ranks);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);

    MPI_Win_lock_all(0, win);
    MPI_Rput(mine, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, win, &request);
    expect("MPI_Rput", 8LL * n, 0, 1, 0, ranks);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget(old, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, win, &request);
    expect("MPI_Rget", 0, 8LL * n, 0, 1, ranks);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Raccumulate(mine, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, MPI_SUM, win, &request);
    expect("MPI_Raccumulate", 8LL * n, 0, 1, 0, ranks);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget_accumulate(mine, n, MPI_DOUBLE, old, n, MPI_DOUBLE, peer, 0, n, MPI_DOUBLE, MPI_SUM, win, &request);
    expect("MPI_Rget_accumulate", 8LL * n, 8LL * n, 1, 1, ranks);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);

    MPI_Win_free(&win);
    write_expectations(argv[1]);
    MPI_Finalize();
    return 0;
}
