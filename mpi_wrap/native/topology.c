#include "topology.h"

#include "mpi_at_hand.h"

#include <stdbool.h>

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
