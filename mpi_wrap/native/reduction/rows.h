/* Rows of single ranks, and what measuring cost each of them. */
#ifndef QUIPU_ROWS_H
#define QUIPU_ROWS_H

#include "file.h"
#include "messages.h"
#include "tree.h"

/* One rank at work. */
struct quipu_work {
    struct quipu_member me;
    const struct quipu_snapshot *mine;
    bool waits; /* calls of MPI tell waiting */
    struct quipu_tree tree;
    uint32_t *path;   /* of each node of the snapshot */
    uint32_t *sorted; /* nodes of the snapshot, by call path */
    uint8_t *is_time, *is_max;
    struct quipu_reduced_file file; /* of rank 0 */
};

/* Seconds that measuring took at a node of the snapshot (docs/design/overhead.md). */
double quipu_overhead_of_node(const struct quipu_work *work, uint32_t node);
/* Events of all ranks into the file. */
void quipu_collect_costs(struct quipu_work *work);
/* Rows of all ranks into the file, one rank after the other: rank 0 holds one piece at a time. */
void quipu_collect_rows(struct quipu_work *work);

#endif
