/* How the program arranges its ranks: the extents of the first grid of all ranks become an attribute of the profile. */
#include "active.h"

#include "group.h"
#include "interface.h"
#include "quipu_runtime.h"

#include <stdio.h>

enum { MOST_DIMENSIONS = 8 };

void quipu_mpi_process_grid(int dimensions, const int *extents) {
    static bool known;
    const struct quipu_mpi_group world = quipu_mpi_group_of(MPI_COMM_WORLD);
    if (known || world.rank != 0 || dimensions < 1 || dimensions > MOST_DIMENSIONS)
        return;
    char text[MOST_DIMENSIONS * 12] = "";
    size_t length = 0;
    long long ranks = 1;
    for (int dimension = 0; dimension < dimensions; ++dimension) {
        if (extents[dimension] < 1 || extents[dimension] > world.all)
            return;
        ranks *= extents[dimension];
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%s%d", dimension > 0 ? "x" : "", extents[dimension]);
    }
    if (ranks != world.all)
        return;
    known = true;
    quipu_attribute("process_grid", text);
}
