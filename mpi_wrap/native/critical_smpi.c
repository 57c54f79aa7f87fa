/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the blocks that ranks wait for under SMPI, for the metric critical_blocks: the basic blocks for which a rank
 * would wait if only one call path took time, and each block took the same time. All ranks are in this process, so the
 * metric is exact at all collective operations.
 *
 * Each rank has a logical clock for each call path. The clock counts the blocks that the rank has executed in the call
 * path, and the blocks that it has waited for. If a rank waits for other ranks in an operation, its clocks are set to
 * the largest clocks of these ranks at their arrival.
 */
#include "delays.h"

#ifdef SMPI_H

#include <stdlib.h>
#include <string.h>

struct quipu_mpi_critical {
    /* awaited: blocks that the rank has waited for. came: clocks at the arrival at the latest operation. */
    struct quipu_mpi_blocks awaited, came;
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
