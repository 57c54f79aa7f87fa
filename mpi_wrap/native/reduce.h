/* reduce.h: the reduction of the profiles of all ranks to one file (docs/design/reduction.md).
 *
 *   reduce_tree.c   call trees: unification, packing
 *   reduce_cells.c  statistics of one metric of one call path: merging, packing
 *   reduce_file.c   the file that rank 0 writes
 *   reduce_rows.c    rows of single ranks, and what measuring cost each of them
 *   reduce_messages.c
 *   reduce.c        who sends what to whom
 * reduce_at_end.c is where a measured program comes to it. Nothing here has state of its own: ranks may be threads of
 * one process (SMPI).
 */
#ifndef QUIPU_REDUCE_H
#define QUIPU_REDUCE_H

#include "quipu.h"
#include "quipu_reduction.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#pragma GCC visibility push(hidden)

/* reduce_tree.c ------------------------------------------------------------------------------------------- */

/* Call paths of one or several ranks. Region 0 is where code runs outside of regions. */
struct quipu_tree {
    uint32_t nodes, node_room;
    uint32_t *parent; /* UINT32_MAX: a root */
    uint32_t *region;
    uint8_t *open;
    uint32_t regions, region_room;
    char **texts;         /* records as in profiles; identity is the name at their beginning */
    uint32_t *node_slots; /* hash tables: index + 1, 0 is free */
    uint32_t *region_slots;
    uint32_t node_slot_count, region_slot_count;
    bool failed; /* no memory: what is here is not all */
};

void quipu_tree_begin(struct quipu_tree *tree);
void quipu_tree_end(struct quipu_tree *tree);
/* The number of a region or call path, added if it is new. The first description of a region with a file is kept. */
uint32_t quipu_tree_region(struct quipu_tree *tree, const char *text);
uint32_t quipu_tree_node(struct quipu_tree *tree, uint32_t parent, uint32_t region);
/* Adds a snapshot; path[i] is the call path of its node i. */
void quipu_tree_add_snapshot(struct quipu_tree *tree, const struct quipu_snapshot *snapshot, uint32_t *path);
/* The tree as a message; NULL if there is no memory. */
char *quipu_tree_pack(const struct quipu_tree *tree, uint64_t *size);
/* Adds the tree of a message; false if the message is damaged. path: NULL, or gets the call path of each node. */
bool quipu_tree_add_packed(struct quipu_tree *tree, const char *message, uint64_t size, uint32_t *path);
uint64_t quipu_hash(const void *bytes, size_t size, uint64_t hash);

/* reduce_cells.c ------------------------------------------------------------------------------------------ */

enum { QUIPU_CELLS = 512, QUIPU_BUCKETS = 32, QUIPU_BUCKET_SHIFT = 47 };

/* One metric of one call path over some ranks. */
struct quipu_cell {
    double sum, m2, min, max; /* m2: sum of squared deviations from the mean */
    uint32_t min_rank, max_rank;
    uint32_t present; /* ranks that have the call path */
    uint32_t known;   /* ranks whose value is known; 0 of those that do not have the call path is known */
    uint8_t level;    /* of the quantile sketch: pairs of buckets joined so often */
    uint8_t used;
    uint16_t bucket[QUIPU_BUCKETS]; /* ascending */
    uint32_t count[QUIPU_BUCKETS];
};

/* value: NaN if unknown. */
void quipu_cell_of_rank(struct quipu_cell *cell, double value, bool present, uint32_t rank);
void quipu_cell_merge(struct quipu_cell *into, const struct quipu_cell *from);
enum { QUIPU_PACKED_CELL = 51 + 6 * QUIPU_BUCKETS }; /* bytes at most */
char *quipu_cell_pack(char *to, const struct quipu_cell *cell);
/* The end of the cell in the message, NULL if the message ends before or is damaged. */
const char *quipu_cell_unpack(const char *from, const char *end, struct quipu_cell *cell);

/* reduce_file.c ------------------------------------------------------------------------------------------- */

struct quipu_reduced_file {
    FILE *file; /* NULL: nothing can be written (any more) */
    char temporary[4200], path[4200];
};

uint32_t quipu_crc32(uint32_t crc, const void *bytes, size_t size);
void quipu_file_open(struct quipu_reduced_file *file, const char *folder, const char *id);
/* One section whose content consists of several parts. */
struct quipu_part {
    const void *bytes;
    size_t size;
};
void quipu_file_section(struct quipu_reduced_file *file, const char *tag, const struct quipu_part *parts, size_t count);
/* The same in pieces: the head, then the content, then quipu_file_pad. */
void quipu_file_head(struct quipu_reduced_file *file, const char *tag, uint32_t crc, uint64_t length);
void quipu_file_bytes(struct quipu_reduced_file *file, const void *bytes, size_t size);
void quipu_file_pad(struct quipu_reduced_file *file, uint64_t length);
void quipu_file_cells(struct quipu_reduced_file *file, uint32_t first, const struct quipu_cell *cells, uint32_t count);
/* Gives the file its name if all is on the disk; else removes it and returns false. */
bool quipu_file_close(struct quipu_reduced_file *file, bool complete);

/* reduce_messages.c --------------------------------------------------------------------------------------- */

enum { QUIPU_TAG = 1, QUIPU_PIECE = 1 << 20 };
struct quipu_reduction;

/* One rank at work. */
struct quipu_work {
    MPI_Comm comm;
    int rank, size;
    const struct quipu_snapshot *mine;
    struct quipu_reduction *reduction;
    struct quipu_tree tree;
    uint32_t *path;   /* of each node of the snapshot */
    uint32_t *sorted; /* nodes of the snapshot, by call path */
    uint8_t *is_time, *is_max;
    struct quipu_reduced_file file; /* of rank 0 */
    bool good;
};

void quipu_send_pieces(struct quipu_work *work, const char *bytes, uint64_t size, int to);
void quipu_receive_pieces(struct quipu_work *work, char *bytes, uint64_t size, int from);
/* A message with its length before it; received into new memory: NULL if there is none, after all of it has come. */
void quipu_send_bytes(struct quipu_work *work, const char *bytes, uint64_t size, int to);
char *quipu_receive_bytes(struct quipu_work *work, uint64_t *size, int from);
/* How many ranks are below this one in the binomial tree, itself included. */
int quipu_below(const struct quipu_work *work);
void quipu_broadcast(struct quipu_work *work, void *bytes, uint64_t size);
/* The least of each number over all ranks, on all ranks; at most 8 numbers. */
void quipu_least(struct quipu_work *work, uint64_t *numbers, size_t count);
/* Gathers `size` bytes of each rank. all: room for those of this rank and all below it, its own at the beginning. */
void quipu_gather(struct quipu_work *work, char *all, size_t size);
/* Whether all ranks are still well. Every step that can fail on one rank alone ends with it. */
bool quipu_agreed(struct quipu_work *work);

/* reduce_rows.c ------------------------------------------------------------------------------------------- */

/* Seconds that measuring took at a node of the snapshot (docs/design/overhead.md). */
double quipu_overhead_of_node(const struct quipu_work *work, uint32_t node);
/* Events of all ranks into the file. */
void quipu_collect_costs(struct quipu_work *work);
/* Rows of all ranks into the file, one rank after the other: rank 0 holds one piece at a time. */
void quipu_collect_rows(struct quipu_work *work);

/* reduce.c ------------------------------------------------------------------------------------------------ */

struct quipu_reduction {
    const char *folder;
    uint32_t column_ranks; /* up to so many ranks their rows are kept, above statistics */
    uint32_t pid;
    bool waits;  /* calls of MPI tell waiting */
    char id[20]; /* out: the id of the file */
};

/* Collective over `comm`; mine may be NULL (then nobody reduces). Returns whether rank 0 has written the file. */
bool quipu_reduce(const struct quipu_snapshot *mine, MPI_Comm comm, struct quipu_reduction *reduction);

#pragma GCC visibility pop
#endif
