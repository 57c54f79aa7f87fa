/* Counts and datatypes to bytes, also of the neighbours in topologies of processes. */
#ifndef QUIPU_MPI_BYTES_H
#define QUIPU_MPI_BYTES_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* A datatype for all, or one for each of an array of counts (the Fortran array if the C array is NULL). */
struct quipu_mpi_types {
    MPI_Datatype all;
    const MPI_Datatype *each;
    const MPI_Fint *fortran;
};

/* The predefined datatype whose size this thread asked for last. It cannot be freed, so it keeps its size. */
struct quipu_mpi_known_type {
    MPI_Datatype type; /* no handle at first; its size is 0, as that of a null handle */
    uint64_t size;
};
extern _Thread_local struct quipu_mpi_known_type quipu_mpi_known_type __attribute__((tls_model("initial-exec")));
uint64_t quipu_mpi_ask_type_size(MPI_Datatype datatype);

/* The datatype of an empty part may be MPI_DATATYPE_NULL or garbage: it is not looked at. */
static inline uint64_t quipu_mpi_bytes(int64_t count, MPI_Datatype datatype) {
    if (count <= 0)
        return 0;
    const struct quipu_mpi_known_type *known = &quipu_mpi_known_type;
    return (uint64_t)count * (known->type == datatype ? known->size : quipu_mpi_ask_type_size(datatype));
}
/* Bytes of `length` counts, each of `width` bytes (int or MPI_Count). */
uint64_t quipu_mpi_sum(const void *counts, size_t width, int length, struct quipu_mpi_types types);
/* What a completed operation received or read. */
uint64_t quipu_mpi_status_bytes(const MPI_Status *status);

enum quipu_mpi_direction { QUIPU_MPI_IN, QUIPU_MPI_OUT };
/* Neighbours of the topology that are not MPI_PROC_NULL. */
uint64_t quipu_mpi_degree(MPI_Comm comm, enum quipu_mpi_direction direction);
/* Bytes of the counts, one for each neighbour that is not MPI_PROC_NULL: as quipu_mpi_sum. */
uint64_t quipu_mpi_sum_neighbours(const void *counts, size_t width, enum quipu_mpi_direction direction, MPI_Comm comm,
                                  struct quipu_mpi_types types);

#endif
