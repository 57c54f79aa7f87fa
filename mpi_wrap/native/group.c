/* SPDX-License-Identifier: Apache-2.0 */
#include "group.h"

/* The group of MPI_COMM_WORLD is stored, because most calls use it and it never changes. Under SMPI it is not stored,
 * because all ranks share this variable. */
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
