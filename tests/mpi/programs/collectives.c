/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective operation in every form, with every root, in place, and between two groups. */
#include "expect.h"

enum { N = 3, ROOM = 256 };

static double out[ROOM], in[ROOM];
static amount counts[16], symmetric[16];
static displacement places[16], bytes_at[16];
static MPI_Datatype types[16];

/* Rank i has part i + 1 in the v functions. */
static int prepare(int size, int rank) {
    int total = 0;
    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = total;
        total += counts[i];
        symmetric[i] = i + rank + 1;
        bytes_at[i] = 8 * 16 * i;
        types[i] = (i + rank) % 2 ? MPI_DOUBLE : MPI_FLOAT;
    }
    return total;
}

static void rooted(MPI_Comm comm, int p, int r, int root) {
    const int here = r == root, total = prepare(p, r);
    EVERY_FORM(MPI_Bcast, MPI_Ibcast, here ? 8LL * N * p : 0, 8 * N, p, out, N, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Scatter, MPI_Iscatter, here ? 8LL * N * p : 0, 8 * N, p, out, N, MPI_DOUBLE, in, N, MPI_DOUBLE, root,
               comm);
    EVERY_FORM(MPI_Scatter, MPI_Iscatter, here ? 8LL * N * p : 0, 8 * N, p, out, N, MPI_DOUBLE,
               here ? MPI_IN_PLACE : in, here ? 0 : N, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Scatterv, MPI_Iscatterv, here ? 8LL * total : 0, 8LL * (r + 1), p, out, here ? counts : NULL,
               here ? places : NULL, MPI_DOUBLE, in, r + 1, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Scatterv, MPI_Iscatterv, here ? 8LL * total : 0, 8LL * (r + 1), p, out, counts, places, MPI_DOUBLE,
               here ? MPI_IN_PLACE : in, r + 1, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Gather, MPI_Igather, 8 * N, here ? 8LL * N * p : 0, p, out, N, MPI_DOUBLE, in, N, MPI_DOUBLE, root,
               comm);
    EVERY_FORM(MPI_Gather, MPI_Igather, 8 * N, here ? 8LL * N * p : 0, p, here ? MPI_IN_PLACE : out, here ? 0 : N,
               MPI_DOUBLE, in, N, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Gatherv, MPI_Igatherv, 8LL * (r + 1), here ? 8LL * total : 0, p, out, r + 1, MPI_DOUBLE, in,
               here ? counts : NULL, here ? places : NULL, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Gatherv, MPI_Igatherv, 8LL * (r + 1), here ? 8LL * total : 0, p, here ? MPI_IN_PLACE : out, r + 1,
               MPI_DOUBLE, in, counts, places, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Reduce, MPI_Ireduce, 8 * N, here ? 8LL * N * p : 0, p, out, in, N, MPI_DOUBLE, MPI_SUM, root, comm);
    EVERY_FORM(MPI_Reduce, MPI_Ireduce, 8 * N, here ? 8LL * N * p : 0, p, here ? MPI_IN_PLACE : out, in, N, MPI_DOUBLE,
               MPI_MAX, root, comm);
    EVERY_FORM(MPI_Bcast, MPI_Ibcast, 0, 0, p, out, 0, MPI_DOUBLE, root, comm);
}

static void symmetrical(MPI_Comm comm, int p, int r) {
    const int total = prepare(p, r);
    long long varied = 0, mixed = 0;
    for (int i = 0; i < p; i++) {
        varied += 8LL * symmetric[i];
        mixed += (long long)symmetric[i] * ((i + r) % 2 ? 8 : 4);
    }
    EVERY_FORM(MPI_Barrier, MPI_Ibarrier, 0, 0, p, comm);
    EVERY_FORM(MPI_Allgather, MPI_Iallgather, 8LL * N * p, 8LL * N * p, p, out, N, MPI_DOUBLE, in, N, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Allgather, MPI_Iallgather, 8LL * N * p, 8LL * N * p, p, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, N,
               MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Allgatherv, MPI_Iallgatherv, 8LL * p * (r + 1), 8LL * total, p, out, r + 1, MPI_DOUBLE, in, counts,
               places, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Allgatherv, MPI_Iallgatherv, 8LL * p * (r + 1), 8LL * total, p, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
               in, counts, places, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Allreduce, MPI_Iallreduce, 8 * N, 8 * N, p, out, in, N, MPI_DOUBLE, MPI_SUM, comm);
    EVERY_FORM(MPI_Allreduce, MPI_Iallreduce, 8 * N, 8 * N, p, MPI_IN_PLACE, in, N, MPI_DOUBLE, MPI_SUM, comm);
    EVERY_FORM(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, 8LL * N * p, 8LL * N * p, p, out, in, N, MPI_DOUBLE,
               MPI_SUM, comm);
    EVERY_FORM(MPI_Reduce_scatter, MPI_Ireduce_scatter, 8LL * total, 8LL * p * (r + 1), p, out, in, counts, MPI_DOUBLE,
               MPI_SUM, comm);
    EVERY_FORM(MPI_Scan, MPI_Iscan, 8 * N, 8 * N, p, out, in, N, MPI_DOUBLE, MPI_SUM, comm);
    EVERY_FORM(MPI_Exscan, MPI_Iexscan, 8 * N, 8 * N, p, out, in, N, MPI_DOUBLE, MPI_SUM, comm);
    EVERY_FORM(MPI_Alltoall, MPI_Ialltoall, 8LL * N * p, 8LL * N * p, p, out, N, MPI_DOUBLE, in, N, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Alltoall, MPI_Ialltoall, 8LL * N * p, 8LL * N * p, p, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, N,
               MPI_DOUBLE, comm);
    for (int i = 0; i < p; i++)
        places[i] = 16 * i;
    EVERY_FORM(MPI_Alltoallv, MPI_Ialltoallv, varied, varied, p, out, symmetric, places, MPI_DOUBLE, in, symmetric,
               places, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Alltoallv, MPI_Ialltoallv, varied, varied, p, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in,
               symmetric, places, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Alltoallw, MPI_Ialltoallw, mixed, mixed, p, out, symmetric, bytes_at, types, in, symmetric, bytes_at,
               types, comm);
}

#ifdef HAS_MPI_4
/* MPICH 4.0 breaks down when a persistent scatter starts again; so not every form does. */
static void again(int p) {
    MPI_Request request;
    MPI_Allreduce_init(out, in, N, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < 3; round++) {
        MPI_Start(&request);
        expect_collective("MPI_Start", 8 * N, 8 * N, p);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
}
#endif

/* Between two groups: the root is process 0 of the first one; a process deals with the processes of the other. */
static void between_groups(int ranks, int rank) {
    MPI_Comm group, comm;
    int local, remote, r;
    const int first = rank < (ranks + 1) / 2;
    MPI_Comm_split(MPI_COMM_WORLD, first, rank, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, first ? (ranks + 1) / 2 : 0, 7, &comm);
    MPI_Comm_size(comm, &local);
    MPI_Comm_remote_size(comm, &remote);
    MPI_Comm_rank(comm, &r);
    const int here = first && r == 0, root = here ? MPI_ROOT : first ? MPI_PROC_NULL : 0;
    const long long part = first ? 0 : 8 * N, all = here ? 8LL * N * remote : 0;
    const int total = prepare(remote, r);
    EVERY_FORM(MPI_Bcast, MPI_Ibcast, all, part, ranks, out, N, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Scatter, MPI_Iscatter, all, part, ranks, out, N, MPI_DOUBLE, in, N, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Gather, MPI_Igather, part, all, ranks, out, N, MPI_DOUBLE, in, N, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Reduce, MPI_Ireduce, part, all, ranks, out, in, N, MPI_DOUBLE, MPI_SUM, root, comm);
    EVERY_FORM(MPI_Scatterv, MPI_Iscatterv, here ? 8LL * total : 0, first ? 0 : 8LL * (r + 1), ranks, out, counts,
               places, MPI_DOUBLE, in, r + 1, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Gatherv, MPI_Igatherv, first ? 0 : 8LL * (r + 1), here ? 8LL * total : 0, ranks, out, r + 1,
               MPI_DOUBLE, in, counts, places, MPI_DOUBLE, root, comm);
    EVERY_FORM(MPI_Barrier, MPI_Ibarrier, 0, 0, ranks, comm);
    EVERY_FORM(MPI_Allreduce, MPI_Iallreduce, 8 * N, 8 * N, ranks, out, in, N, MPI_DOUBLE, MPI_SUM, comm);
    EVERY_FORM(MPI_Allgather, MPI_Iallgather, 8LL * N * remote, 8LL * N * remote, ranks, out, N, MPI_DOUBLE, in, N,
               MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Allgatherv, MPI_Iallgatherv, 8LL * remote * (r + 1), 8LL * total, ranks, out, r + 1, MPI_DOUBLE, in,
               counts, places, MPI_DOUBLE, comm);
    EVERY_FORM(MPI_Alltoall, MPI_Ialltoall, 8LL * N * remote, 8LL * N * remote, ranks, out, N, MPI_DOUBLE, in, N,
               MPI_DOUBLE, comm);
    /* Both groups reduce a vector of the same length: N elements for each pair of a local and a remote process. */
    EVERY_FORM(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, 8LL * N * remote * local, 8LL * N * remote * remote,
               ranks, out, in, N * remote, MPI_DOUBLE, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&group);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int root = 0; root < ranks; root++)
        rooted(MPI_COMM_WORLD, ranks, rank, root);
    symmetrical(MPI_COMM_WORLD, ranks, rank);
    symmetrical(MPI_COMM_SELF, 1, 0);
#ifdef HAS_MPI_4
    again(ranks);
#endif
    if (ranks > 1)
        between_groups(ranks, rank);
    write_expectations(argv[1]);
    MPI_Finalize();
    return 0;
}
