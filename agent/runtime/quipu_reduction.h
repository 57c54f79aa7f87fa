/* SPDX-License-Identifier: Apache-2.0 */
/* quipu_reduction.h: what the reduction over MPI takes of a process (docs/design/reduction.md). */
#ifndef QUIPU_REDUCTION_H
#define QUIPU_REDUCTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Seconds that events take in this process, as its profile says. */
struct quipu_costs {
    double pair;    /* a region is entered and left */
    double quiet;   /* a visit of a region without a hook */
    double counter; /* a counter is added to */
    double clock;   /* a reading of the clock */
};
enum { QUIPU_PAIRS, QUIPU_QUIET_VISITS, QUIPU_COUNTERS_ADDED, QUIPU_EVENTS };

/* What this process has counted so far, all threads. Nodes are in the order in which they were made: parents come
 * before children. */
struct quipu_snapshot {
    uint32_t nodes, regions, metrics; /* regions: one more than the largest index that is used */
    double seconds_per_tick;          /* of metrics with the unit s; 0: no time is kept */
    struct quipu_costs costs;
    const uint32_t *parent;   /* index; UINT32_MAX: a root */
    const uint32_t *region;   /* index; UINT32_MAX: the root of a location, where code runs outside of regions */
    const uint32_t *location; /* thread number */
    const uint8_t *open;      /* 1: the call path was active, and will get more */
    const uint64_t *values;   /* [nodes][metrics] */
    const uint64_t *events;   /* [nodes][QUIPU_EVENTS]: enters and exits, visits without them, additions of counting */
    const char *const *texts; /* of regions: name, display, file, line, kind, joined by \x1f */
    const char *metric_table; /* as in the header of profiles */
};
/* Takes a snapshot; NULL if nothing is measured or there is no memory. Time stops until quipu_end_snapshot. */
const struct quipu_snapshot *quipu_take_snapshot(void);
/* Time goes on, without what has passed since. With the id of a reduction that holds the snapshot, what this process
 * counts from here to its end also goes into its profile as differences; without (NULL) the snapshot is forgotten. */
void quipu_end_snapshot(const char *reduction);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
