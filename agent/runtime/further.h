/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of nodes that only some runs have (further_metrics.def), for the libraries that count them. */
#ifndef QUIPU_FURTHER_H
#define QUIPU_FURTHER_H

#include "quipu_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum quipu_further_group { QUIPU_GROUP_MEMORY, QUIPU_GROUP_FILES, QUIPU_GROUP_OFFLOAD, QUIPU_GROUPS };

/* Numbers of the metrics of all groups, one group after the other. */
enum quipu_further_metric {
#define QUIPU_FURTHER_METRIC(group, id, name, unit, kind, over_locations, description) QUIPU_##id,
#include "further_metrics.def"
    QUIPU_FURTHER_COUNT
};

/* The functions are weak: a program may have brought a runtime that does not have them; quipu_check says so.
 *
 * What to add to a quipu_further_metric of this group for its place among the metrics of a node; 0 while there is no
 * profile, or it has no such metrics. */
__attribute__((weak)) uint32_t quipu_further_place(enum quipu_further_group group);

/* What the library that counts a group defines; NULL where it is not loaded, and the group is not counted then. They
 * are symbols, because other libraries may enter regions before the constructors of that one run. Called before values
 * of nodes are read: at each flush of the profile, and with `last` not 0 when the values that it leaves are final. */
__attribute__((weak)) void quipu_settle_memory(int last);
__attribute__((weak)) void quipu_settle_files(int last);

/* What OpenMP does not tell of the kernel that this thread is about to start: threads of each team, and iterations of
 * the loops that it distributes. 0: not known. */
__attribute__((weak)) void quipu_next_kernel(uint64_t threads, uint64_t iterations);

/* Whether the active call path of this thread is a call of MPI, or lies below one: of MPI-IO, or another one. */
enum quipu_in_mpi { QUIPU_NOT_IN_MPI, QUIPU_IN_MPI_IO, QUIPU_IN_MPI };
__attribute__((weak)) enum quipu_in_mpi quipu_in_mpi(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
