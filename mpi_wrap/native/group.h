/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of communicators, windows and files. */
#ifndef QUIPU_MPI_GROUP_H
#define QUIPU_MPI_GROUP_H

#include "call.h"

/* The processes of an operation. operations.toml explains size, local_size, rank, root_here and leaf. */
struct quipu_mpi_group {
    int all; /* number of processes; in an inter-communicator, of both groups together; 0: not known */
    int size;
    int local_size;
    int rank;
    bool inter; /* the communicator is an inter-communicator */
    bool root_here;
    bool leaf;
};

/* The group of MPI_COMM_WORLD. all = 0 before MPI_Init, in a program that uses only sessions, and under SMPI. */
QUIPU_MPI_VARIABLE struct quipu_mpi_group quipu_mpi_world;
/* Stores the group of MPI_COMM_WORLD after MPI_Init. */
void quipu_mpi_know_world(void);
/* Returns the group of a communicator without root_here and leaf, as MPI reports it; all = 0 if MPI returns an error.
 */
struct quipu_mpi_group quipu_mpi_ask_group(MPI_Comm comm);

static inline struct quipu_mpi_group quipu_mpi_group_of(MPI_Comm comm) {
    if (__builtin_expect(comm == MPI_COMM_WORLD && quipu_mpi_world.all > 0, 1))
        return quipu_mpi_world;
    if (comm == MPI_COMM_SELF)
        return (struct quipu_mpi_group){.all = 1, .size = 1, .local_size = 1};
    return quipu_mpi_ask_group(comm);
}

/* Returns quipu_mpi_group_of(comm).all. */
static inline int quipu_mpi_processes_of(MPI_Comm comm) {
    if (__builtin_expect(comm == MPI_COMM_WORLD && quipu_mpi_world.all > 0, 1))
        return quipu_mpi_world.all;
    return comm == MPI_COMM_SELF ? 1 : quipu_mpi_ask_group(comm).all;
}

/* Returns the group of a communicator with root_here and leaf for this root. */
struct quipu_mpi_group quipu_mpi_rooted(MPI_Comm comm, int root);
/* Return the group of a window or file, with only the member `all`. */
struct quipu_mpi_group quipu_mpi_group_of_win(MPI_Win win);
struct quipu_mpi_group quipu_mpi_group_of_file(MPI_File file);

#endif
