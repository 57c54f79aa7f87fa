/* SPDX-License-Identifier: Apache-2.0 */
/* The number of the interface between instrumented code and the runtime. Pass and runtime compute it here. Each
 * instrumented file contains it, and the runtime refuses files with another number (quipu_check). */
#ifndef QUIPU_INTERFACE_H
#define QUIPU_INTERFACE_H

#include "inlined.h"

#include <stddef.h>

#ifdef __cplusplus
#define QUIPU_CONSTEXPR constexpr
#else
#define QUIPU_CONSTEXPR
#endif

/* Raise this revision when a meaning or a member changes, but no value in `facts` below. A changed value in `facts`
 * changes the number of the interface without it. */
enum { QUIPU_INTERFACE_REVISION = 9 };

static inline QUIPU_CONSTEXPR uint32_t quipu_interface(void) {
    const uint64_t facts[] = {
        QUIPU_INTERFACE_REVISION,
        QUIPU_METRIC_COUNT,
        QUIPU_TIME,
        QUIPU_VISITS,
        QUIPU_BLOCKS,
        QUIPU_WEIGHTED,
        QUIPU_MOST_COUNTERS,
        QUIPU_TABLE_ENTRIES,
        QUIPU_CLOCK_NONE,
        QUIPU_CLOCK_NANOSECONDS,
        sizeof(struct quipu_region),
        QUIPU_MADE_REGION,
        offsetof(struct quipu_region, kind),
        offsetof(struct quipu_region, id),
        offsetof(struct quipu_region, weights),
        offsetof(struct quipu_region, counters),
        offsetof(struct quipu_region, hook),
        offsetof(struct quipu_region, hash),
        offsetof(struct quipu_region, scopes),
        offsetof(struct quipu_region, scope_count),
        offsetof(struct quipu_region, slot),
        offsetof(struct quipu_region, details),
        sizeof(struct quipu_details),
        sizeof(struct quipu_frame),
        offsetof(struct quipu_frame, counters),
        offsetof(struct quipu_frame, node),
        offsetof(struct quipu_link, from),
        offsetof(struct quipu_link, region),
        offsetof(struct quipu_link, to),
        offsetof(struct quipu_link, counters),
        offsetof(struct quipu_link, visits),
        offsetof(struct quipu_node, salt),
        offsetof(struct quipu_frame, back),
        offsetof(struct quipu_visit, top),
        offsetof(struct quipu_visit, back),
        offsetof(struct quipu_visit, here),
        offsetof(struct quipu_program, active_node),
        QUIPU_FRAMED,
        offsetof(struct quipu_node, metrics),
        offsetof(struct quipu_thread, here),
        offsetof(struct quipu_thread, top),
        offsetof(struct quipu_thread, table),
    };
    /* FNV-1a over the facts, and the names and units of the metrics */
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        hash = (hash ^ facts[i]) * 1099511628211u;
    const char metrics[] =
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description) name "\t" unit "\n"
#include "metrics.def"
        ;
    for (size_t i = 0; i < sizeof metrics; i++)
        hash = (hash ^ (unsigned char)metrics[i]) * 1099511628211u;
    return (uint32_t)((hash ^ hash >> 32) & 0xffffffffu);
}

/* A library that the pass did not compile calls this first. `module` must be static. Its `source` is the name of the
 * library in messages. */
static inline void quipu_check_library(struct quipu_module *module) {
    module->interface = quipu_interface();
    quipu_check(module);
}

#endif
