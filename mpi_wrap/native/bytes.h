/* SPDX-License-Identifier: Apache-2.0 */
/* Computes bytes from counts and datatypes, also for the neighbours in process topologies. */
#ifndef QUIPU_MPI_BYTES_H
#define QUIPU_MPI_BYTES_H

#include "call.h"

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* One datatype for all counts, or an array with a datatype for each count (the Fortran array if the C array is NULL).
 */
struct quipu_mpi_types {
    MPI_Datatype all;
    const MPI_Datatype *each;
    const MPI_Fint *fortran;
};

uint64_t quipu_mpi_ask_type_size(MPI_Datatype datatype);

/* For a count of 0 the datatype is not used: it may be MPI_DATATYPE_NULL or invalid. */
static inline uint64_t quipu_mpi_bytes(int64_t count, MPI_Datatype datatype) {
    if (count <= 0)
        return 0;
#ifndef SMPI_H
    if (__builtin_expect(quipu_mpi_thread.type == datatype, 1))
        return (uint64_t)count * quipu_mpi_thread.size;
#endif
    return (uint64_t)count * quipu_mpi_ask_type_size(datatype);
}
/* Returns the bytes of `length` counts; each count has `width` bytes (int or MPI_Count). */
uint64_t quipu_mpi_sum(const void *counts, size_t width, int length, struct quipu_mpi_types types);
/* Returns the bytes that a completed operation received or read. */
uint64_t quipu_mpi_status_bytes(const MPI_Status *status);

enum quipu_mpi_direction { QUIPU_MPI_IN, QUIPU_MPI_OUT };
/* Returns the number of neighbours of the topology that are not MPI_PROC_NULL. */
uint64_t quipu_mpi_degree(MPI_Comm comm, enum quipu_mpi_direction direction);
/* Returns the bytes of the counts of all neighbours that are not MPI_PROC_NULL; arguments as in quipu_mpi_sum. */
uint64_t quipu_mpi_sum_neighbours(const void *counts, size_t width, enum quipu_mpi_direction direction, MPI_Comm comm,
                                  struct quipu_mpi_types types);

#endif
