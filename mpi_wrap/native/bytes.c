/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"

#include "mpi_at_hand.h"
#include "quipu_runtime.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* Returns the size (bytes) that a call of MPI reported; 0 if its error code `result` is an error, or the size is
 * negative. Records the first error as an attribute. */
static uint64_t known_size(int result, int64_t size) {
    static atomic_flag said = ATOMIC_FLAG_INIT;
    if (result == MPI_SUCCESS)
        return size > 0 ? (uint64_t)size : 0;
    if (!atomic_flag_test_and_set(&said))
        quipu_attribute("mpi_problem", "MPI did not say the size of a message: bytes are missing");
    return 0;
}

static uint64_t type_size(MPI_Datatype datatype) {
#ifdef QUIPU_MPI_HAVE_Type_size_x
    MPI_Count size = 0;
    int result = PMPI_Type_size_x(datatype, &size);
#else
    int size = 0;
    int result = PMPI_Type_size(datatype, &size);
#endif
    return known_size(result, size);
}

uint64_t quipu_mpi_ask_type_size(MPI_Datatype datatype) {
    if (datatype == MPI_DATATYPE_NULL) /* an error, which the call of the program reports */
        return 0;
    const uint64_t size = type_size(datatype);
#ifndef SMPI_H /* SMPI has no MPI_Type_get_envelope */
    int integers, addresses, types, combiner = MPI_UNDEFINED;
    if (size > 0 && PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
        combiner == MPI_COMBINER_NAMED) {
        quipu_mpi_thread.type = (MPI_Datatype)0; /* a signal handler may leave the code below by longjmp */
        atomic_signal_fence(memory_order_seq_cst);
        quipu_mpi_thread.size = size;
        atomic_signal_fence(memory_order_seq_cst);
        quipu_mpi_thread.type = datatype;
    }
#endif
    return size;
}

static int64_t count_at(const void *counts, size_t width, int index) {
    if (width == sizeof(int))
        return ((const int *)counts)[index];
    int64_t count;
    memcpy(&count, (const char *)counts + width * (size_t)index, sizeof count);
    return count;
}

uint64_t quipu_mpi_sum(const void *counts, size_t width, int length, struct quipu_mpi_types types) {
    uint64_t total = 0;
    if (types.each == NULL && types.fortran == NULL) {
        for (int i = 0; i < length; i++)
            total += (uint64_t)count_at(counts, width, i);
        return total > 0 ? total * type_size(types.all) : 0;
    }
    for (int i = 0; i < length; i++) {
        MPI_Datatype datatype = types.each != NULL ? types.each[i] : PMPI_Type_f2c(types.fortran[i]);
        total += quipu_mpi_bytes(count_at(counts, width, i), datatype);
    }
    return total;
}

uint64_t quipu_mpi_status_bytes(const MPI_Status *status) {
#ifdef QUIPU_MPI_HAVE_Get_elements_x
    MPI_Count bytes = 0;
    /* The cast is for an mpi.h whose status arguments are not const. */
    int result = PMPI_Get_elements_x((MPI_Status *)status, MPI_BYTE, &bytes);
#else
    int bytes = 0;
    int result = PMPI_Get_count((MPI_Status *)status, MPI_BYTE, &bytes);
#endif
    return known_size(result, bytes);
}

/* Sets exist[0] and exist[1] to whether there is a neighbour in direction -1 and +1 of a dimension of a Cartesian
 * topology. */
static void cartesian_neighbours(MPI_Comm comm, int dimension, bool exist[2]) {
    int before = MPI_PROC_NULL, after = MPI_PROC_NULL;
    PMPI_Cart_shift(comm, dimension, 1, &before, &after);
    exist[0] = before != MPI_PROC_NULL;
    exist[1] = after != MPI_PROC_NULL;
}

/* Returns the number of neighbours in a topology, including MPI_PROC_NULL; 0 without a topology. Sets *dimensions to
 * the number of dimensions of a Cartesian topology; 0 for other topologies. */
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
