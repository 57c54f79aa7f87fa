/* SPDX-License-Identifier: Apache-2.0 */
/* quipu_reduction.h: the data of a process for the reduction over MPI (docs/design/reduction.md). */
#ifndef QUIPU_REDUCTION_H
#define QUIPU_REDUCTION_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Seconds per event in this process, as in its profile. */
struct quipu_costs {
    double pair;    /* entering and leaving a region */
    double quiet;   /* a visit of a region without a hook */
    double counter; /* adding to a counter */
    double clock;   /* a reading of the clock */
};
enum { QUIPU_PAIRS, QUIPU_QUIET_VISITS, QUIPU_COUNTERS_ADDED, QUIPU_EVENTS };

/* The counts of this process, all threads. Nodes are in the order of creation, so parents come before children. */
struct quipu_snapshot {
    uint32_t nodes, regions, metrics; /* regions: largest used index + 1 */
    double seconds_per_tick;          /* for metrics with the unit s; 0: time is not measured */
    struct quipu_costs costs;
    const uint32_t *parent;   /* index; UINT32_MAX: a root */
    const uint32_t *region;   /* index; UINT32_MAX: the root of a location, where code runs outside of regions */
    const uint32_t *location; /* thread number */
    const uint8_t *open;      /* 1: the call path is active and will get more */
    const uint64_t *values;   /* [nodes][metrics] */
    const uint64_t *events;   /* [nodes][QUIPU_EVENTS]: enters and exits, visits without them, additions of counting */
    const char *const *texts; /* of regions: name, display, file, line, kind, joined by \x1f */
    const char *metric_table; /* as in the header of profiles */
};
/* Takes a snapshot; NULL if nothing is measured or there is no memory. No time is counted until quipu_end_snapshot. */
const struct quipu_snapshot *quipu_take_snapshot(void);
/* Ends a snapshot. Time counts again, without the time since the snapshot. With the id of a reduction that contains the
 * snapshot, later counts of this process are also written into its profile as differences. With NULL the snapshot is
 * discarded. */
void quipu_end_snapshot(const char *reduction);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
