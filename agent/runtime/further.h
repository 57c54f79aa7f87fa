/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of nodes in some runs only (further_metrics.def), for the libraries that count them. */
#ifndef QUIPU_FURTHER_H
#define QUIPU_FURTHER_H

#include "quipu_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum quipu_further_group {
    QUIPU_GROUP_MEMORY,
    QUIPU_GROUP_FILES,
    QUIPU_GROUP_OFFLOAD,
    QUIPU_GROUP_MPI_WAIT,
    QUIPU_GROUPS
};

/* Indexes of the metrics of all groups, one group after the other. */
enum quipu_further_metric {
#define QUIPU_FURTHER_METRIC(group, id, name, unit, kind, over_locations, description) QUIPU_##id,
#include "further_metrics.def"
    QUIPU_FURTHER_COUNT
};

/* The following functions are weak, because the program may be linked to a runtime without them; quipu_check reports
 * this.
 *
 * Returns the number to add to a quipu_further_metric of this group, to get the index of the metric in a node; 0 if
 * there is no profile, or the profile has no such metrics. */
__attribute__((weak)) uint32_t quipu_further_place(enum quipu_further_group group);

/* Functions that the library of a group defines. NULL: the library is not loaded, and the group is not counted. They
 * are symbols, because other libraries may enter regions before the constructors of this library run. The runtime calls
 * them before it reads values of nodes: at each flush of the profile, and with `last` not 0 before the final values. */
__attribute__((weak)) void quipu_settle_memory(int last);
__attribute__((weak)) void quipu_settle_files(int last);

/* Sets data of the kernel that this thread starts next, which OpenMP does not report: threads of each team, and
 * iterations of the distributed loops. 0: unknown. */
__attribute__((weak)) void quipu_next_kernel(uint64_t threads, uint64_t iterations);

/* Whether the active call path of this thread is in MPI: not, in MPI-IO, or in another operation. */
enum quipu_in_mpi { QUIPU_NOT_IN_MPI, QUIPU_IN_MPI_IO, QUIPU_IN_MPI };
__attribute__((weak)) enum quipu_in_mpi quipu_in_mpi(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
