/* SPDX-License-Identifier: Apache-2.0 */
/* Cells: statistics of one metric of one call path over ranks, their merging, and messages that contain them. This code
 * is independent of MPI and the runtime, because the merge in Python also calls it (agent/merge/native.py has the same
 * struct). */
#ifndef QUIPU_CELLS_H
#define QUIPU_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* QUIPU_BUCKETS: largest number of buckets. QUIPU_LEVELS: largest number of joins. QUIPU_BUCKET_SHIFT: number of bits
 * that are removed from a value (double) to get its bucket number. The exponent and 5 bits of the mantissa remain:
 * there are 32 buckets per power of two. */
enum { QUIPU_BUCKETS = 32, QUIPU_LEVELS = 16, QUIPU_BUCKET_SHIFT = 47 };

/* One metric of one call path over a set of ranks. All members are zero for an empty set. */
struct quipu_cell {
    double sum, m2, min, max;    /* m2: sum of squared deviations from the mean */
    uint32_t min_rank, max_rank; /* the lowest ranks with these values */
    uint32_t present;            /* number of ranks that have the call path */
    uint32_t known; /* number of ranks whose value is known. The value of a rank without the call path is known: 0. */
    uint8_t level;  /* quantile sketch: how often neighbouring buckets were joined */
    uint8_t used;   /* number of used buckets */
    uint16_t bucket[QUIPU_BUCKETS]; /* numbers of the used buckets, ascending */
    uint32_t count[QUIPU_BUCKETS];  /* number of ranks in each used bucket */
};
extern const uint32_t quipu_cell_size; /* bytes */

/* Sets a cell to the value of one rank (NaN: unknown). present: whether the rank has the call path. */
void quipu_cell_of_rank(struct quipu_cell *cell, double value, bool present, uint32_t rank);
/* Merges each of `count` cells in `from` into the cell with the same index in `into`. The two sets of
 * ranks must be disjoint. */
void quipu_cells_merge(struct quipu_cell *into, const struct quipu_cell *from, uint64_t count);
/* Adds the values of one metric on several ranks to the cells of `paths` call paths.
 *
 * The cell of call path i is cells[i * stride]. ranks: the rank_count ranks, ascending. Row r: value[r] (NaN: unknown)
 * is the value of call path path[r] on rank rank[r]. Rows are sorted by call path, then rank. Several rows of one
 * rank are its threads: the sum of their values counts, or with `largest` their maximum. A rank without a row has the
 * value 0. Returns false if rows remain, because they are not sorted, or belong to other call paths or ranks. */
bool quipu_cells_add_rows(struct quipu_cell *cells, uint64_t stride, uint64_t paths, const int64_t *ranks,
                          uint64_t rank_count, uint64_t rows, const int64_t *path, const int64_t *rank,
                          const double *value, bool largest);

enum { QUIPU_PACKED_CELL = 51 + 6 * QUIPU_BUCKETS }; /* largest size of a cell in a message (bytes) */
/* Writes cells into a message. Returns the size of the message in bytes. */
uint64_t quipu_cells_pack(char *message, const struct quipu_cell *cells, uint64_t count);
/* Merges the `count` cells of a message of `size` bytes into `into`. Returns false if the message is damaged. */
bool quipu_cells_merge_packed(struct quipu_cell *into, uint64_t count, const char *message, uint64_t size);

#endif
