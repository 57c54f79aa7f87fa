/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the blocks that ranks wait for, for the metric critical_blocks: the basic blocks for which a rank would wait
 * if only one call path took time, and each block took the same time. Each rank has a logical clock for each call path.
 * The clock counts the blocks that the rank has executed in the call path, and the blocks that it has waited for. A
 * synchronization sets the clocks of all ranks to the largest one.
 *
 * The clocks are in hash tables. A call path has one bucket in each table, which the hash of its names selects. Ranks
 * therefore need no common numbers of call paths. A probe (delays.c) first compares a checksum of all clocks. The ranks
 * exchange the clocks only if the checksums differ.
 *
 * If only some collective operations are probed, a probed call represents `weight` calls. The blocks that ranks wait
 * for in the other calls are estimated, and added at the end.
 */
#include "delays.h"

#ifndef SMPI_H

#include <stdlib.h>
#include <string.h>

enum { TABLES = 4, BUCKETS = 256, ALL_BUCKETS = TABLES * BUCKETS };

static uint64_t awaited[ALL_BUCKETS]; /* blocks that this rank has waited for */
static uint64_t awaited_sum;          /* part of the checksum quipu_mpi_clocks that these blocks add */
static double unseen[ALL_BUCKETS];    /* estimated blocks that ranks wait for in calls without a probe */

static uint32_t bucket_of(uint32_t table, uint64_t path) {
    const uint64_t mixed = (path ^ path >> 32) * UINT64_C(0x9E3779B97F4A7C15);
    return table * BUCKETS + (uint32_t)(mixed >> (32 + 8 * table)) % BUCKETS;
}

static uint64_t factor_of(uint32_t bucket) {
    const uint64_t mixed = (bucket + 1) * UINT64_C(0x9E3779B97F4A7C15);
    return (mixed ^ mixed >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
}

/* Sets *blocks to the executed blocks of each call path, and returns the number of call paths. Returns 0 if several
 * threads may call MPI at the same time: a synchronization of one thread does not synchronize the other threads. */
static size_t executed(const struct quipu_blocks **blocks) { return quipu_mpi_concurrent ? 0 : quipu_executed(blocks); }

uint64_t quipu_mpi_clocks(void) {
    const struct quipu_blocks *blocks = NULL;
    const size_t paths = executed(&blocks);
    uint64_t sum = awaited_sum;
    for (size_t i = 0; i < paths; i++) {
        if (blocks[i].blocks == 0)
            continue;
        uint64_t factor = 0;
        for (uint32_t table = 0; table < TABLES; table++)
            factor += factor_of(bucket_of(table, blocks[i].path));
        sum += factor * blocks[i].blocks;
    }
    return sum;
}

/* Adds an estimate for the calls without a probe: (weight - 1) times the maximum minus the mean of the clocks over the
 * ranks. clocks, most: clocks of this rank, and their maximum over the ranks. weight: number of calls that this probe
 * represents; 0: other probes represent the calls before this probe, so its blocks are subtracted. Returns false if MPI
 * returned an error. */
static bool add_unseen(const uint64_t clocks[ALL_BUCKETS], const uint64_t most[ALL_BUCKETS], MPI_Comm comm, int ranks,
                       uint64_t weight) {
    uint64_t sums[ALL_BUCKETS];
    memcpy(sums, clocks, sizeof sums);
    if (PMPI_Allreduce(MPI_IN_PLACE, sums, ALL_BUCKETS, MPI_UINT64_T, MPI_SUM, comm) != MPI_SUCCESS)
        return false;
    for (int i = 0; i < ALL_BUCKETS; i++)
        unseen[i] += ((double)weight - 1) * ((double)most[i] - (double)sums[i] / ranks);
    return true;
}

bool quipu_mpi_set_clocks(MPI_Comm comm, int ranks, uint64_t weight) {
    const struct quipu_blocks *blocks = NULL;
    const size_t paths = executed(&blocks);
    uint64_t own[ALL_BUCKETS] = {0}, clocks[ALL_BUCKETS], most[ALL_BUCKETS];
    for (size_t i = 0; i < paths; i++)
        for (uint32_t table = 0; blocks[i].blocks != 0 && table < TABLES; table++)
            own[bucket_of(table, blocks[i].path)] += blocks[i].blocks;
    for (int i = 0; i < ALL_BUCKETS; i++)
        most[i] = clocks[i] = own[i] + awaited[i];
    if (PMPI_Allreduce(MPI_IN_PLACE, most, ALL_BUCKETS, MPI_UINT64_T, MPI_MAX, comm) != MPI_SUCCESS)
        return false;
    if (weight != 1 && !add_unseen(clocks, most, comm, ranks, weight))
        return false;
    if (paths == 0)
        return true;
    awaited_sum = 0;
    for (uint32_t i = 0; i < ALL_BUCKETS; i++) {
        awaited[i] = most[i] - own[i];
        awaited_sum += factor_of(i) * awaited[i];
    }
    return true;
}

void quipu_mpi_record_awaited(void) {
    static uint32_t users[ALL_BUCKETS];
    const struct quipu_blocks *blocks = NULL;
    const size_t paths = executed(&blocks);
    uint64_t *awaited_blocks = paths == 0 ? NULL : calloc(paths, sizeof *awaited_blocks);
    if (awaited_blocks == NULL)
        return;
    for (size_t i = 0; i < paths; i++)
        for (uint32_t table = 0; blocks[i].blocks != 0 && table < TABLES; table++)
            users[bucket_of(table, blocks[i].path)]++;
    /* The blocks that this rank has waited for in a call path are the minimum over its buckets that no other call path
     * of this rank uses. If there is no such bucket, they are the minimum over all of its buckets. */
    for (size_t i = 0; i < paths; i++) {
        uint64_t least = UINT64_MAX, least_of_all = UINT64_MAX;
        for (uint32_t table = 0; table < TABLES; table++) {
            const uint32_t bucket = bucket_of(table, blocks[i].path);
            const uint64_t waited = awaited[bucket] + (unseen[bucket] > 0 ? (uint64_t)unseen[bucket] : 0);
            if (waited < least_of_all)
                least_of_all = waited;
            if (users[bucket] == 1 && waited < least)
                least = waited;
        }
        awaited_blocks[i] = least != UINT64_MAX ? least : least_of_all;
    }
    quipu_await_blocks(awaited_blocks, paths);
    free(awaited_blocks);
}

#endif
