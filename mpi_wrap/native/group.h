/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of communicators, windows and files. */
#ifndef QUIPU_MPI_GROUP_H
#define QUIPU_MPI_GROUP_H

#include "call.h"

/* The processes of an operation, with the names of operations.toml. all: number of processes of the whole communicator.
 */
struct quipu_mpi_group {
    int all;
    int size;
    int local_size;
    int rank;
    bool inter;
    bool root_here;
    bool leaf;
};

/* MPI_COMM_WORLD once MPI is initialized; all = 0 before. */
QUIPU_MPI_VARIABLE struct quipu_mpi_group quipu_mpi_world;
/* Stores the data of MPI_COMM_WORLD after MPI_Init. */
void quipu_mpi_know_world(void);
struct quipu_mpi_group quipu_mpi_ask_group(MPI_Comm comm);

static inline struct quipu_mpi_group quipu_mpi_group_of(MPI_Comm comm) {
    if (__builtin_expect(comm == MPI_COMM_WORLD && quipu_mpi_world.all > 0, 1))
        return quipu_mpi_world;
    if (comm == MPI_COMM_SELF)
        return (struct quipu_mpi_group){.all = 1, .size = 1, .local_size = 1};
    return quipu_mpi_ask_group(comm);
}

/* Returns only the number of processes. */
static inline int quipu_mpi_processes_of(MPI_Comm comm) {
    if (__builtin_expect(comm == MPI_COMM_WORLD && quipu_mpi_world.all > 0, 1))
        return quipu_mpi_world.all;
    return comm == MPI_COMM_SELF ? 1 : quipu_mpi_ask_group(comm).all;
}

/* Returns the group with root_here and leaf for this root. */
struct quipu_mpi_group quipu_mpi_rooted(MPI_Comm comm, int root);
/* Return groups of which only `all` is known. */
struct quipu_mpi_group quipu_mpi_group_of_win(MPI_Win win);
struct quipu_mpi_group quipu_mpi_group_of_file(MPI_File file);

#endif
