/* SPDX-License-Identifier: Apache-2.0 */
/* The reduction of the profiles of all ranks to one file (docs/design/reduction.md).
 *
 *   paths, cells   call paths and statistics: the same code as in the merge post mortem
 *   tree           call trees with their regions as messages
 *   work           one rank: its messages, its rows, its measurement overhead, and the file that rank 0 writes
 * There are no global variables, because ranks may be threads of one process (SMPI).
 */
#ifndef QUIPU_REDUCE_H
#define QUIPU_REDUCE_H

#include "quipu_reduction.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct quipu_reduction {
    const char *folder;
    uint32_t column_ranks; /* with at most this number of ranks, the file has rows of ranks; otherwise statistics */
    uint32_t pid;
    bool waits;  /* calls of MPI separate waiting */
    char id[20]; /* out: the id of the file */
};

/* Collective over `comm`. If `mine` is NULL on a rank, no file is written. Returns whether rank 0 has written the file.
 */
bool quipu_reduce(const struct quipu_snapshot *mine, MPI_Comm comm, struct quipu_reduction *reduction);

#endif
