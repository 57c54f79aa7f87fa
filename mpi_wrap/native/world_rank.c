/* SPDX-License-Identifier: Apache-2.0 */
#include "world_rank.h"

#include <stdatomic.h>
#include <string.h>

/* A cache of translated ranks. An entry is read without a lock (sequence lock): its number is odd while it is written,
 * and changes with each write. An entry is valid only if its generation is the current one, which changes when a
 * communicator or window is freed. */
enum { KNOWN = 256 };
struct known {
    _Atomic uint32_t number, generation;
    _Atomic uint64_t handle; /* of a communicator, or the complement of the handle of a window */
    _Atomic int rank, world; /* rank in this communicator or window, and in MPI_COMM_WORLD */
};
static struct known known[KNOWN];
static _Atomic uint32_t generation;

void quipu_mpi_handle_ends(void) { atomic_fetch_add_explicit(&generation, 1, memory_order_seq_cst); }

static struct known *entry_of(uint64_t handle, int rank) {
    const uint64_t hash = (handle ^ handle >> 32 ^ (uint64_t)(uint32_t)rank << 7) * UINT64_C(0x9E3779B97F4A7C15);
    return &known[hash >> 56];
}

static bool is_known(uint64_t handle, int rank, uint32_t now, int *world) {
    struct known *entry = entry_of(handle, rank);
    const uint32_t number = atomic_load_explicit(&entry->number, memory_order_acquire);
    const bool same = atomic_load_explicit(&entry->generation, memory_order_relaxed) == now &&
                      atomic_load_explicit(&entry->handle, memory_order_relaxed) == handle &&
                      atomic_load_explicit(&entry->rank, memory_order_relaxed) == rank;
    *world = atomic_load_explicit(&entry->world, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return same && number != 0 && number % 2 == 0 &&
           atomic_load_explicit(&entry->number, memory_order_relaxed) == number;
}

static void know(uint64_t handle, int rank, uint32_t now, int world) {
    struct known *entry = entry_of(handle, rank);
    uint32_t number = atomic_load_explicit(&entry->number, memory_order_relaxed);
    if (number % 2 != 0 || !atomic_compare_exchange_strong_explicit(&entry->number, &number, number + 1,
                                                                    memory_order_acquire, memory_order_relaxed))
        return; /* another thread writes this entry, or was interrupted while writing and left by longjmp */
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&entry->generation, now, memory_order_relaxed);
    atomic_store_explicit(&entry->handle, handle, memory_order_relaxed);
    atomic_store_explicit(&entry->rank, rank, memory_order_relaxed);
    atomic_store_explicit(&entry->world, world, memory_order_relaxed);
    atomic_store_explicit(&entry->number, number + 2, memory_order_release);
}

static bool has_world(void) {
#ifdef SMPI_H
    return true;
#else
    return quipu_mpi_world.all > 0; /* a program that uses only sessions has no MPI_COMM_WORLD */
#endif
}

/* Returns the rank in MPI_COMM_WORLD of a rank of a group, and frees the group. result: error code of the MPI call that
 * returned the group. */
static int world_rank_in_group(int result, MPI_Group members, int rank) {
    MPI_Group world = MPI_GROUP_NULL;
    int found = MPI_UNDEFINED;
    if (result != MPI_SUCCESS)
        return QUIPU_MPI_ELSEWHERE;
    if (has_world() && PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
        if (PMPI_Group_translate_ranks(members, 1, &rank, world, &found) != MPI_SUCCESS)
            found = MPI_UNDEFINED;
        PMPI_Group_free(&world);
    }
    PMPI_Group_free(&members);
    return found == MPI_UNDEFINED || found < 0 ? QUIPU_MPI_ELSEWHERE : found;
}

int quipu_mpi_ask_world_rank(MPI_Comm comm, int rank) {
    int world = QUIPU_MPI_ELSEWHERE, inter = 0;
    if (comm == MPI_COMM_SELF)
        return has_world() && PMPI_Comm_rank(MPI_COMM_WORLD, &world) == MPI_SUCCESS ? world : QUIPU_MPI_ELSEWHERE;
    uint64_t handle = 0;
    memcpy(&handle, &comm, sizeof(MPI_Comm));
    const uint32_t now = atomic_load_explicit(&generation, memory_order_seq_cst);
    if (is_known(handle, rank, now, &world))
        return world;
    MPI_Group members = MPI_GROUP_NULL;
    int result = PMPI_Comm_test_inter(comm, &inter);
    if (result == MPI_SUCCESS)
        result = inter ? PMPI_Comm_remote_group(comm, &members) : PMPI_Comm_group(comm, &members);
    world = world_rank_in_group(result, members, rank);
    know(handle, rank, now, world);
    return world;
}

int quipu_mpi_world_rank_in_win(MPI_Win win, int rank) {
    int world = QUIPU_MPI_ELSEWHERE;
    uint64_t handle = 0;
    memcpy(&handle, &win, sizeof(MPI_Win));
    handle = ~handle; /* windows and communicators may have equal handles */
    const uint32_t now = atomic_load_explicit(&generation, memory_order_seq_cst);
    if (is_known(handle, rank, now, &world))
        return world;
    MPI_Group members = MPI_GROUP_NULL;
    const int result = PMPI_Win_get_group(win, &members);
    world = world_rank_in_group(result, members, rank);
    know(handle, rank, now, world);
    return world;
}
