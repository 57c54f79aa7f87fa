/* SPDX-License-Identifier: Apache-2.0 */
/* Records the process grid of the program as attributes: the extents of the first grid that contains all ranks and,
 * if a call of MPI_Cart_create gives them, which of its dimensions are periodic. */
#include "active.h"

#include "group.h"
#include "interface.h"
#include "quipu_runtime.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DIMENSIONS = 8, MOST_TEXT = MOST_DIMENSIONS * 12 };

static void write_numbers(char text[MOST_TEXT], int dimensions, const int *numbers) {
    size_t length = 0;
    text[0] = '\0';
    for (int dimension = 0; dimension < dimensions; ++dimension)
        length +=
            (size_t)snprintf(text + length, MOST_TEXT - length, "%s%d", dimension > 0 ? "x" : "", numbers[dimension]);
}

void quipu_mpi_process_grid(int dimensions, const int *extents, const int *periods) {
    static char known[MOST_TEXT];
    static bool periodic;
    const struct quipu_mpi_group world = quipu_mpi_group_of(MPI_COMM_WORLD);
    if (periodic || world.rank != 0 || dimensions < 1 || dimensions > MOST_DIMENSIONS)
        return;
    long long ranks = 1;
    for (int dimension = 0; dimension < dimensions; ++dimension) {
        if (extents[dimension] < 1 || extents[dimension] > world.all)
            return;
        ranks *= extents[dimension];
    }
    if (ranks != world.all)
        return;
    char text[MOST_TEXT];
    write_numbers(text, dimensions, extents);
    if (known[0] == '\0') {
        memcpy(known, text, sizeof known);
        quipu_attribute("process_grid", text);
    }
    if (periods == NULL || strcmp(known, text) != 0)
        return;
    int flags[MOST_DIMENSIONS];
    for (int dimension = 0; dimension < dimensions; ++dimension)
        flags[dimension] = periods[dimension] != 0;
    write_numbers(text, dimensions, flags);
    periodic = true;
    quipu_attribute("process_grid_periodic", text);
}
