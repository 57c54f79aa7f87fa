/* SPDX-License-Identifier: Apache-2.0 */
/* The metric critical_blocks under SMPI: the blocks that ranks wait for if only one call path takes time, and each
 * block takes the same time. All ranks are in this process, so the metric is exact at all collective operations.
 *
 * Each rank has a clock for each call path: the blocks that the rank has executed, plus the blocks that it has waited
 * for. A rank that waits for other ranks in an operation gets the largest of their clocks at the arrival.
 */
#include "delays.h"

#ifdef SMPI_H

#include <stdlib.h>
#include <string.h>

struct quipu_mpi_critical {
    struct quipu_mpi_blocks awaited, came; /* `came`: the clocks at the arrival at the latest operation */
};

static bool make_room(struct quipu_mpi_blocks *blocks, size_t wanted) {
    if (wanted <= blocks->room)
        return true;
    const size_t room = 2 * wanted;
    uint64_t *larger = realloc(blocks->of, room * sizeof *larger);
    if (larger == NULL)
        return false;
    memset(larger + blocks->room, 0, (room - blocks->room) * sizeof *larger);
    *blocks = (struct quipu_mpi_blocks){room, larger};
    return true;
}

void quipu_mpi_reach(struct quipu_mpi_blocks *reached) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank == NULL || (rank->critical == NULL && (rank->critical = calloc(1, sizeof *rank->critical)) == NULL))
        return;
    const struct quipu_blocks *executed = NULL;
    const size_t paths = quipu_executed(&executed);
    struct quipu_mpi_blocks *awaited = &rank->critical->awaited, *came = &rank->critical->came;
    if (!make_room(awaited, paths) || !make_room(came, paths) || (reached != NULL && !make_room(reached, paths)))
        return;
    for (size_t i = 0; i < paths; i++) {
        came->of[i] = executed[i].blocks + awaited->of[i];
        if (reached != NULL && came->of[i] > reached->of[i])
            reached->of[i] = came->of[i];
    }
}

void quipu_mpi_go_on_from(const struct quipu_mpi_blocks *reached) {
    const struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank == NULL || rank->critical == NULL)
        return;
    struct quipu_mpi_blocks *awaited = &rank->critical->awaited, *came = &rank->critical->came;
    if (!make_room(awaited, reached->room) || !make_room(came, reached->room))
        return;
    for (size_t i = 0; i < reached->room; i++)
        if (reached->of[i] > came->of[i])
            awaited->of[i] += reached->of[i] - came->of[i];
}

void quipu_mpi_end_probes(void) {
    const struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank != NULL && rank->critical != NULL)
        quipu_await_blocks(rank->critical->awaited.of, rank->critical->awaited.room);
}

#endif
