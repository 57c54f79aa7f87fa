/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbourhood collectives on a line (the ends miss a neighbour), a directed ring and a graph. */
#include "expect.h"

enum { N = 3, ROOM = 64 };

static double out[ROOM], in[ROOM];

static void equal_parts(MPI_Comm comm, int p, int sends, int receives) {
    EVERY_FORM(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, 8LL * N * sends, 8LL * N * receives, p, out, N,
               MPI_DOUBLE, in, N, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, 8LL * N * sends, 8LL * N * receives, p, out, N,
               MPI_DOUBLE, in, N, MPI_DOUBLE, comm);
}

/* The edge between ranks i and i + 1 carries i + 1 elements each way. */
static void line(int p, int r) {
    MPI_Comm comm;
    const int open = 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &p, &open, 0, &comm);
    const int before = r > 0, after = r < p - 1;
    equal_parts(comm, p, before + after, before + after);
    const amount counts[2] = {before ? r : 7, after ? r + 1 : 7};
    const displacement places[2] = {0, 16};
    const amount same[2] = {before ? r : 7, after ? r + 2 : 7};
    const MPI_Aint offsets[2] = {0, 128};
    const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_DOUBLE};
    const long long edges = 8LL * ((before ? r : 0) + (after ? r + 1 : 0));
    EVERY_FORM(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, 8LL * (r + 1) * (before + after),
               8LL * ((before ? r : 0) + (after ? r + 2 : 0)), p, out, r + 1, MPI_DOUBLE, in, same, places, MPI_DOUBLE,
               comm);
    EVERY_FORM(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, edges, edges, p, out, counts, places, MPI_DOUBLE, in,
               counts, places, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, edges, edges, p, out, counts, offsets, types, in,
               counts, offsets, types, comm);
    MPI_Comm_free(&comm);
}

static void ring(int p, int r) {
    MPI_Comm comm;
    const int left = (r + p - 1) % p, right = (r + 1) % p, weight = 1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, &weight, 1, &right, &weight, MPI_INFO_NULL, 0, &comm);
    equal_parts(comm, p, 1, 1);
    const amount mine = r + 1, lefts = left + 1;
    const displacement first = 0;
    EVERY_FORM(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, 8LL * mine, 8LL * lefts, p, out, &mine, &first,
               MPI_DOUBLE, in, &lefts, &first, MPI_DOUBLE, comm);
    MPI_Comm_free(&comm);
}

/* A star: rank 0 is the neighbour of all others. */
static void star(int p, int r) {
    MPI_Comm comm;
    int index[16], edges[32];
    for (int i = 0; i < p; i++) {
        index[i] = p - 1 + i;
        edges[p - 1 + i] = 0; /* of the others, one each */
    }
    for (int i = 0; i < p - 1; i++)
        edges[i] = i + 1;
    MPI_Graph_create(MPI_COMM_WORLD, p, index, edges, 0, &comm);
    equal_parts(comm, p, r == 0 ? p - 1 : 1, r == 0 ? p - 1 : 1);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    line(ranks, rank);
    ring(ranks, rank);
    if (ranks > 1)
        star(ranks, rank);
    write_expectations(argv[1]);
    MPI_Finalize();
    return 0;
}
