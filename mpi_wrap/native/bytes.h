/* SPDX-License-Identifier: Apache-2.0 */
/* Computes bytes from counts and datatypes, also for the neighbours in process topologies. */
#ifndef QUIPU_MPI_BYTES_H
#define QUIPU_MPI_BYTES_H

#include "call.h"

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* The datatypes of one or several counts. */
struct quipu_mpi_types {
    MPI_Datatype all;         /* the datatype of all counts, if both arrays are NULL */
    const MPI_Datatype *each; /* NULL, or the datatype of each count */
    const MPI_Fint *fortran;  /* NULL, or the same with Fortran handles; used if `each` is NULL */
};

/* Returns the bytes of an element of this datatype without gaps, as MPI reports them; 0 if MPI reports no size. */
uint64_t quipu_mpi_ask_type_size(MPI_Datatype datatype);

/* Returns the bytes of `count` elements without gaps. If the count is 0, the datatype is not used and may be invalid.
 */
static inline uint64_t quipu_mpi_bytes(int64_t count, MPI_Datatype datatype) {
    if (count <= 0)
        return 0;
#ifndef SMPI_H
    if (__builtin_expect(quipu_mpi_thread.type == datatype, 1))
        return (uint64_t)count * quipu_mpi_thread.size;
#endif
    return (uint64_t)count * quipu_mpi_ask_type_size(datatype);
}
/* Returns the sum of the bytes of `length` counts. width: sizeof(int) or sizeof(MPI_Count), the type of the counts. */
uint64_t quipu_mpi_sum(const void *counts, size_t width, int length, struct quipu_mpi_types types);
/* Returns the bytes that a completed operation received or read. */
uint64_t quipu_mpi_status_bytes(const MPI_Status *status);

enum quipu_mpi_direction { QUIPU_MPI_IN, QUIPU_MPI_OUT };
/* Returns the number of neighbours in the topology of a communicator that are not MPI_PROC_NULL. */
uint64_t quipu_mpi_degree(MPI_Comm comm, enum quipu_mpi_direction direction);
/* Returns the sum of the bytes of the counts of all neighbours that are not MPI_PROC_NULL. counts, width, types: as in
 * quipu_mpi_sum. */
uint64_t quipu_mpi_sum_neighbours(const void *counts, size_t width, enum quipu_mpi_direction direction, MPI_Comm comm,
                                  struct quipu_mpi_types types);

#endif
