/* Neighbours in topologies of processes. */
#ifndef QUIPU_MPI_TOPOLOGY_H
#define QUIPU_MPI_TOPOLOGY_H

#include "bytes.h"

enum quipu_mpi_direction { QUIPU_MPI_IN, QUIPU_MPI_OUT };
/* Neighbours of the topology that are not MPI_PROC_NULL. */
uint64_t quipu_mpi_degree(MPI_Comm comm, enum quipu_mpi_direction direction);
/* Bytes of the counts, one for each neighbour that is not MPI_PROC_NULL: as quipu_mpi_sum. */
uint64_t quipu_mpi_sum_neighbours(const void *counts, size_t width, enum quipu_mpi_direction direction, MPI_Comm comm,
                                  struct quipu_mpi_types types);

#endif
