/* Processes of communicators, windows, files and topologies. */
#include "quipu_mpi.h"

/* MPI_COMM_WORLD never changes and is what most programs use. In SMPI all ranks share these variables. */
struct quipu_mpi_group quipu_mpi_world;

void quipu_mpi_know_world(void) {
#ifndef SMPI_H
    quipu_mpi_world = quipu_mpi_ask_group(MPI_COMM_WORLD);
#endif
}

struct quipu_mpi_group quipu_mpi_ask_group(MPI_Comm comm) {
    struct quipu_mpi_group group = {0};
    int inter = 0;
    if (PMPI_Comm_size(comm, &group.local_size) != MPI_SUCCESS || PMPI_Comm_rank(comm, &group.rank) != MPI_SUCCESS)
        return group;
    group.all = group.size = group.local_size;
    if (comm != MPI_COMM_WORLD && PMPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter) {
        group.inter = true;
        if (PMPI_Comm_remote_size(comm, &group.size) != MPI_SUCCESS)
            group.size = 0;
        group.all = group.local_size + group.size;
    }
    return group;
}

struct quipu_mpi_group quipu_mpi_rooted(MPI_Comm comm, int root) {
    struct quipu_mpi_group group = quipu_mpi_group_of(comm);
    group.root_here = group.inter ? root == MPI_ROOT : root == group.rank;
    group.leaf = !group.inter || (root != MPI_ROOT && root != MPI_PROC_NULL);
    return group;
}

static struct quipu_mpi_group size_of_group(int result, MPI_Group members) {
    struct quipu_mpi_group group = {0};
    if (result == MPI_SUCCESS) {
        PMPI_Group_size(members, &group.all);
        PMPI_Group_free(&members);
    }
    return group;
}

struct quipu_mpi_group quipu_mpi_group_of_win(MPI_Win win) {
    MPI_Group members = MPI_GROUP_NULL;
    int result = PMPI_Win_get_group(win, &members);
    return size_of_group(result, members);
}

struct quipu_mpi_group quipu_mpi_group_of_file(MPI_File file) {
    MPI_Group members = MPI_GROUP_NULL;
    int result = PMPI_File_get_group(file, &members);
    return size_of_group(result, members);
}

/* Whether neighbours -1 and +1 of one dimension of a Cartesian topology exist. */
static void cartesian_neighbours(MPI_Comm comm, int dimension, bool exist[2]) {
    int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, dimension, 1, &before, &after);
    exist[0] = before != MPI_PROC_NULL;
    exist[1] = after != MPI_PROC_NULL;
}

/* Neighbours including MPI_PROC_NULL; *dimensions > 0 for a Cartesian topology. */
static int neighbours(MPI_Comm comm, enum quipu_mpi_direction direction, int *dimensions) {
    int topology = MPI_UNDEFINED, in = 0, out = 0, weighted = 0, rank = 0;
    *dimensions = 0;
    if (PMPI_Topo_test(comm, &topology) != MPI_SUCCESS)
        return 0;
    if (topology == MPI_CART) {
        PMPI_Cartdim_get(comm, dimensions);
        return 2 * *dimensions;
    }
    if (topology == MPI_GRAPH) {
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, &in);
        return in;
    }
#ifdef QUIPU_MPI_HAVE_Dist_graph_neighbors_count
    if (topology == MPI_DIST_GRAPH)
        PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
#else
    (void)weighted;
#endif
    return direction == QUIPU_MPI_IN ? in : out;
}

uint64_t quipu_mpi_degree(MPI_Comm comm, enum quipu_mpi_direction direction) {
    int dimensions = 0;
    const int all = neighbours(comm, direction, &dimensions);
    if (dimensions == 0)
        return (uint64_t)all;
    uint64_t degree = 0;
    for (int dimension = 0; dimension < dimensions; dimension++) {
        bool exist[2];
        cartesian_neighbours(comm, dimension, exist);
        degree += (uint64_t)exist[0] + exist[1];
    }
    return degree;
}

uint64_t quipu_mpi_sum_neighbours(const void *counts, size_t width, enum quipu_mpi_direction direction, MPI_Comm comm,
                                  struct quipu_mpi_types types) {
    int dimensions = 0;
    const int all = neighbours(comm, direction, &dimensions);
    if (dimensions == 0)
        return quipu_mpi_sum(counts, width, all, types);
    uint64_t bytes = 0;
    for (int i = 0; i < all; i++) {
        bool exist[2];
        cartesian_neighbours(comm, i / 2, exist);
        if (!exist[i % 2])
            continue;
        struct quipu_mpi_types own = types;
        own.each = types.each == NULL ? NULL : types.each + i;
        own.fortran = types.fortran == NULL ? NULL : types.fortran + i;
        bytes += quipu_mpi_sum((const char *)counts + width * (size_t)i, width, 1, own);
    }
    return bytes;
}
