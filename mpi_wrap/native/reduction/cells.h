/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of one metric of one call path over ranks: cells, merging, and messages. Independent of MPI and the
 * runtime, because the merge in Python also calls this code (agent/merge/native.py has the same struct). */
#ifndef QUIPU_CELLS_H
#define QUIPU_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUIPU_BUCKETS = 32, QUIPU_LEVELS = 16, QUIPU_BUCKET_SHIFT = 47 };

/* One metric of one call path over a set of ranks. All fields are zero for an empty set. */
struct quipu_cell {
    double sum, m2, min, max;    /* m2: sum of squared deviations from the mean */
    uint32_t min_rank, max_rank; /* the lowest ranks with these values */
    uint32_t present;            /* ranks that have the call path */
    uint32_t known;              /* ranks with a known value; the value 0 of ranks without the call path is known */
    uint8_t level;               /* of the quantile sketch: number of joins of neighbouring buckets */
    uint8_t used;
    uint16_t bucket[QUIPU_BUCKETS]; /* ascending */
    uint32_t count[QUIPU_BUCKETS];
};
extern const uint32_t quipu_cell_size;

/* Sets a cell to the value of one rank (NaN: unknown). */
void quipu_cell_of_rank(struct quipu_cell *cell, double value, bool present, uint32_t rank);
void quipu_cells_merge(struct quipu_cell *into, const struct quipu_cell *from, uint64_t count);
/* Adds one metric of `ranks` ranks (ascending) to the cells of call paths 0 <= i < paths, which are `stride` apart.
 * Rows are sorted by call path, then rank. Several rows of one rank are its threads, whose maximum or sum counts.
 * Returns false if rows are left over: not sorted, or of other call paths and ranks. */
bool quipu_cells_add_rows(struct quipu_cell *cells, uint64_t stride, uint64_t paths, const int64_t *ranks,
                          uint64_t rank_count, uint64_t rows, const int64_t *path, const int64_t *rank,
                          const double *value, bool largest);

enum { QUIPU_PACKED_CELL = 51 + 6 * QUIPU_BUCKETS }; /* bytes at most */
/* Writes the cells into a message; returns its size. */
uint64_t quipu_cells_pack(char *message, const struct quipu_cell *cells, uint64_t count);
/* Merges the cells of a message into `into`; false if the message is damaged. */
bool quipu_cells_merge_packed(struct quipu_cell *into, uint64_t count, const char *message, uint64_t size);

#endif
