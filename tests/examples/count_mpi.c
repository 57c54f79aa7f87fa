/* SPDX-License-Identifier: Apache-2.0 */
/* An independent count of what the examples do with MPI, to check complexity.toml without Quipu: calls, messages and
 * bytes per operation and rank, printed to $COUNT_MPI_DIR/<rank>. Only the operations of the examples are known, with
 * the conventions of docs/examples.md. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum operation {
    SEND,
    RECV,
    ISEND,
    IRECV,
    WAITALL,
    SENDRECV,
    BCAST,
    ALLREDUCE,
    GATHERV,
    ALLGATHER,
    ALLTOALL,
    ALLTOALLV,
    OPERATIONS
};

static const char *const names[OPERATIONS] = {"MPI_Send",    "MPI_Recv",      "MPI_Isend",    "MPI_Irecv",
                                              "MPI_Waitall", "MPI_Sendrecv",  "MPI_Bcast",    "MPI_Allreduce",
                                              "MPI_Gatherv", "MPI_Allgather", "MPI_Alltoall", "MPI_Alltoallv"};
static struct {
    long long calls, messages_sent, messages_received, bytes_sent, bytes_received;
} counts[OPERATIONS];

static long long bytes(long long count, MPI_Datatype type) {
    int size;
    PMPI_Type_size(type, &size);
    return count * size;
}

static int rank_in(MPI_Comm comm) {
    int rank;
    PMPI_Comm_rank(comm, &rank);
    return rank;
}

static int size_of(MPI_Comm comm) {
    int size;
    PMPI_Comm_size(comm, &size);
    return size;
}

static void sent(enum operation operation, long long amount) {
    counts[operation].messages_sent += 1;
    counts[operation].bytes_sent += amount;
}

static void received(enum operation operation, long long amount) {
    counts[operation].messages_received += 1;
    counts[operation].bytes_received += amount;
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    counts[SEND].calls += 1;
    if (to != MPI_PROC_NULL)
        sent(SEND, bytes(count, type));
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status) {
    counts[RECV].calls += 1;
    if (from != MPI_PROC_NULL)
        received(RECV, bytes(count, type));
    return PMPI_Recv(buffer, count, type, from, tag, comm, status);
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
    counts[ISEND].calls += 1;
    if (to != MPI_PROC_NULL)
        sent(ISEND, bytes(count, type));
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

/* The receives of the examples are as long as the messages that they get. */
int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
    counts[IRECV].calls += 1;
    if (from != MPI_PROC_NULL)
        received(IRECV, bytes(count, type));
    return PMPI_Irecv(buffer, count, type, from, tag, comm, request);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    counts[WAITALL].calls += 1;
    return PMPI_Waitall(count, requests, statuses);
}

int MPI_Sendrecv(const void *out, int out_count, MPI_Datatype out_type, int to, int out_tag, void *in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status) {
    counts[SENDRECV].calls += 1;
    if (to != MPI_PROC_NULL)
        sent(SENDRECV, bytes(out_count, out_type));
    if (from != MPI_PROC_NULL)
        received(SENDRECV, bytes(in_count, in_type));
    return PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    counts[BCAST].calls += 1;
    if (rank_in(comm) == root)
        sent(BCAST, size_of(comm) * bytes(count, type));
    received(BCAST, bytes(count, type));
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Allreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    counts[ALLREDUCE].calls += 1;
    sent(ALLREDUCE, bytes(count, type));
    received(ALLREDUCE, bytes(count, type));
    return PMPI_Allreduce(out, in, count, type, op, comm);
}

int MPI_Gatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                const int offsets[], MPI_Datatype in_type, int root, MPI_Comm comm) {
    counts[GATHERV].calls += 1;
    sent(GATHERV, bytes(out_count, out_type));
    if (rank_in(comm) == root) {
        long long total = 0;
        for (int r = 0; r < size_of(comm); ++r)
            total += in_counts[r];
        received(GATHERV, bytes(total, in_type));
    }
    return PMPI_Gatherv(out, out_count, out_type, in, in_counts, offsets, in_type, root, comm);
}

int MPI_Allgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
                  MPI_Comm comm) {
    counts[ALLGATHER].calls += 1;
    sent(ALLGATHER, size_of(comm) * bytes(out_count, out_type));
    received(ALLGATHER, size_of(comm) * bytes(in_count, in_type));
    return PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm);
}

int MPI_Alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
                 MPI_Comm comm) {
    counts[ALLTOALL].calls += 1;
    sent(ALLTOALL, size_of(comm) * bytes(out_count, out_type));
    received(ALLTOALL, size_of(comm) * bytes(in_count, in_type));
    return PMPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm);
}

int MPI_Alltoallv(const void *out, const int out_counts[], const int out_offsets[], MPI_Datatype out_type, void *in,
                  const int in_counts[], const int in_offsets[], MPI_Datatype in_type, MPI_Comm comm) {
    long long out_total = 0, in_total = 0;
    for (int r = 0; r < size_of(comm); ++r) {
        out_total += out_counts[r];
        in_total += in_counts[r];
    }
    counts[ALLTOALLV].calls += 1;
    sent(ALLTOALLV, bytes(out_total, out_type));
    received(ALLTOALLV, bytes(in_total, in_type));
    return PMPI_Alltoallv(out, out_counts, out_offsets, out_type, in, in_counts, in_offsets, in_type, comm);
}

int MPI_Finalize(void) {
    char path[4096];
    const char *directory = getenv("COUNT_MPI_DIR");
    snprintf(path, sizeof path, "%s/%d", directory ? directory : ".", rank_in(MPI_COMM_WORLD));
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        PMPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < OPERATIONS; ++i)
        if (counts[i].calls)
            fprintf(file, "%s %lld %lld %lld %lld %lld\n", names[i], counts[i].calls, counts[i].messages_sent,
                    counts[i].messages_received, counts[i].bytes_sent, counts[i].bytes_received);
    fclose(file);
    return PMPI_Finalize();
}
