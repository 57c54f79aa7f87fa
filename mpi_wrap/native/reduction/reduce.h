/* SPDX-License-Identifier: Apache-2.0 */
/* The reduction of the profiles of all ranks to one file (docs/design/reduction.md).
 *
 *   paths, cells   call paths and statistics: the same code as in the merge after the run
 *   wall           wall times of call paths: the same code as in the merge
 *   tree           call trees with their regions, and messages that contain them
 *   work           one rank: its messages, its values, its measurement overhead, and the file that rank 0 writes
 * There are no global variables, because ranks may share a process.
 */
#ifndef QUIPU_REDUCE_H
#define QUIPU_REDUCE_H

#include "quipu_reduction.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct quipu_reduction {
    const char *folder;
    uint32_t column_ranks; /* with at most so many ranks, the file contains the values of each rank; else statistics */
    uint32_t pid;          /* process id of this rank */
    bool waits;            /* MPI calls record the metric wait_time */
    char id[20];           /* output: the id of the file (text) */
};

/* Reduces the snapshots of all ranks of `comm` to one file. All ranks must call it. If `mine` is NULL on a rank, no
 * file is written. Returns on all ranks whether rank 0 has written the file. */
bool quipu_reduce(const struct quipu_snapshot *mine, MPI_Comm comm, struct quipu_reduction *reduction);

#endif
