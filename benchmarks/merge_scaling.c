/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic ranks for merge_scaling.py: each makes up a call tree and reduces it with the code of the PMPI library.
 *
 *     merge_scaling PATHS METRICS FOLDER COLUMN_RANKS [dry]
 * Prints the seconds of the reduction on rank 0; with "dry" the snapshots are made and not reduced.
 */
#include "merge_scaling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_number(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

enum { TEXT = 96 };

struct quipu_snapshot made_up(uint32_t paths, uint32_t metrics, int rank) {
    uint32_t *parent = calloc(paths, sizeof *parent), *region = calloc(paths, sizeof *region);
    uint32_t *location = calloc(paths, sizeof *location), *number = calloc(paths, sizeof *number);
    uint8_t *open = calloc(paths, 1);
    uint64_t *values = calloc((size_t)paths * metrics, sizeof *values);
    uint64_t *events = calloc((size_t)paths * QUIPU_EVENTS, sizeof *events);
    const uint32_t regions = paths / 4 + 1;
    char *text = calloc(regions, TEXT), **texts = calloc(regions, sizeof *texts);
    char *table = calloc(metrics, TEXT), *line = table;
    if (!parent || !region || !location || !number || !open || !values || !events || !text || !texts || !table)
        abort();
    for (uint32_t i = 0; i < regions; i++) {
        texts[i] = text + (size_t)i * TEXT;
        snprintf(texts[i], TEXT,
                 "_ZN5solver9function%uEv\x1fsolver::function%u()\x1fsrc/solver.cpp\x1f%u\x1f"
                 "0\x1f"
                 "0",
                 i, i, 10 * i);
    }
    for (uint32_t i = 0; i < metrics; i++)
        line += snprintf(line, TEXT,
                         i == 1 ? "metric%u\ts\tcost\tsum\ta time\n" : "metric%u\t1\teffort\tsum\ta count\n", i);
    uint64_t shape = 1, own = (uint64_t)rank + 2;
    uint32_t nodes = 1;
    parent[0] = region[0] = UINT32_MAX;
    number[0] = 0;
    for (uint32_t path = 1; path < paths; path++) {
        const uint32_t above = (uint32_t)(random_number(&shape) % path),
                       name = (uint32_t)(random_number(&shape) % regions);
        number[path] = UINT32_MAX;
        if ((path % 40 == 0 && random_number(&own) % 2 == 0) || number[above] == UINT32_MAX)
            continue;
        number[path] = nodes;
        parent[nodes] = number[above];
        region[nodes] = name;
        open[nodes] = path < 3;
        for (uint32_t metric = 0; metric < metrics; metric++) /* half of the counts are the same on all ranks */
            values[(size_t)nodes * metrics + metric] =
                metric % 2 ? 1000 + random_number(&own) % 1000000 : 1000 + 7 * path + metric;
        nodes++;
    }
    free(number);
    return (struct quipu_snapshot){nodes,    regions, metrics, 1e-9,   {2e-8, 2e-9, 5e-10, 1e-8},  parent, region,
                                   location, open,    values,  events, (const char *const *)texts, table};
}

#ifndef QUIPU_FIBERS
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 5)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const struct quipu_snapshot mine = made_up((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]), rank);
    struct quipu_reduction reduction = {
        .folder = argv[3], .column_ranks = (uint32_t)atoi(argv[4]), .pid = (uint32_t)rank};
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    const bool good = argc > 5 || quipu_reduce(&mine, MPI_COMM_WORLD, &reduction);
    if (rank == 0)
        printf("%.6f\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return good ? 0 : 1;
}
#endif
