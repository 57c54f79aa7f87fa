/* SPDX-License-Identifier: Apache-2.0 */
/* quipu.h: the contract of instrumented code and of users' code with the runtime. The MPI library and the hook of
 * Python also use quipu_runtime.h, the reduction over MPI quipu_reduction.h.
 *
 * The runtime keeps one call-path tree per thread. A region is entered and left; numbers are added to the
 * node of the call path that is active, or to a node that was remembered. The compiler pass, the PMPI
 * library and user code use the same calls. Nothing is measured and nothing is written unless the
 * environment variable QUIPU_DIR names a folder (docs/environment.md).
 */
#ifndef QUIPU_H
#define QUIPU_H

#include "profile_format.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum quipu_metric {
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description) QUIPU_##id,
#include "metrics.def"
    QUIPU_METRIC_COUNT
};

/* The columns of the weights of a region: the metrics that the pass counts, from QUIPU_BLOCKS on. */
enum {
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description)
#define QUIPU_WEIGHTED_METRIC(id, name, unit, kind, over_locations, description) QUIPU_COLUMN_##id,
#include "metrics.def"
    QUIPU_WEIGHTED
};

/* Static descriptor of a region. Lives as long as the program or library that holds it; `id` belongs to the
 * runtime and starts as 0. What follows it is zero unless the pass wrote it. */
struct quipu_region {
    const char *name;    /* linker name: what filters call MANGLED */
    const char *display; /* as a person writes it; NULL if the same as name */
    const char *file;    /* source file, NULL if unknown */
    uint32_t line;       /* line of the definition, 0 if unknown */
    uint32_t kind;       /* enum quipu_kind, and QUIPU_PACKED */
    uint64_t id;
    const void *weights; /* counters + 1 rows of QUIPU_WEIGHTED int64_t: the effort of one visit, then of 1 in each
                            counter; packed if the kind says so, with one more column: additions that
                            counting does */
    uint32_t counters;   /* at most QUIPU_MOST_COUNTERS */
    uint32_t hook;       /* enum quipu_hook */
    uint64_t hash;       /* of the name; 0: the runtime computes it */
    struct quipu_scope *scopes;
    uint64_t scope_count;
    int64_t details; /* 0; of a region that the pass made: how far from here struct quipu_details is. Then `line` is the
                        number of its entry, and `scope_count` which of the scopes in it this is, 0: the function. */
};

/* Names, weights and scopes of the functions of one file, as the pass writes them. If `packed` is less than `size` they
 * are compressed by zlib (agent/runtime/details.cpp). */
struct quipu_details {
    uint32_t size;
    uint32_t packed;
    uint32_t entries;
    uint8_t data[];
};

/* A function that is part of another, and counts with it; the first of them stands for that other itself, as far as it
 * was inlined into itself, and has no name. Parents come before children. */
struct quipu_scope {
    struct quipu_region region; /* without weights */
    uint32_t parent;            /* index of a scope */
    uint32_t count;             /* of rows */
    /* The number of a row of weights of the whole function, and what it means here: visits, then effort. Rows that mean
     * nothing are left out. Packed. */
    const uint8_t *rows;
};
/* A row is packed as the columns that are not 0, one bit each (ULEB128), and their values (SLEB128), as the pass writes
 * it; before it in a scope its number (ULEB128) and the visits (SLEB128). */
enum { QUIPU_PACKED = 0x100 /* added to the kind of a region */ };
enum { QUIPU_SCOPE_ROW = 2 + QUIPU_WEIGHTED };

struct quipu_node; /* a call path of one thread */

/* An active region, and the counters of its call path: the pass adds to them. */
struct quipu_frame {
    uint64_t *counters;
    struct quipu_node *node;
    struct quipu_node *back; /* what was active before */
};

/* Enter a region; never returns NULL. The frame stays valid until quipu_exit of it or of an outer frame. */
struct quipu_frame *quipu_enter(struct quipu_region *region);
/* Leave the region of this frame; frames above it (left by longjmp or by an exception through foreign code)
 * end first. */
void quipu_exit(struct quipu_frame *frame);
/* A visit of a region without a hook; returns the counters to add to. It does not end. */
uint64_t *quipu_count(struct quipu_region *region);
/* Go on at a call path, also one of another thread, without a visit; quipu_exit of the frame goes back. */
struct quipu_frame *quipu_attach(struct quipu_node *path);
/* End all frames above this one: control came back to it by other ways than a return (setjmp returned twice). */
void quipu_unwind(struct quipu_frame *frame);
/* The innermost active frame of this thread: what quipu_unwind takes in functions without a region of their own. */
struct quipu_frame *quipu_top(void);
/* What a block of code does in a scope of a function that was entered: visits, then one number for each weighted
 * metric; bytes that it moved. The reference that counters and weights are tested against uses nothing else. */
void quipu_effort(struct quipu_region *function, uint64_t scope, const int64_t *work);
void quipu_moved(struct quipu_region *function, uint64_t scope, uint64_t bytes_loaded, uint64_t bytes_stored);

/* What every instrumented program and library calls when it is loaded, before anything else: ends the process, with one
 * line that says what to do, if the pass that made it and this runtime do not fit. This never changes. */
struct quipu_module;
void quipu_check(const struct quipu_module *module);

/* 1 while this process is measured. */
int quipu_active(void);
/* The call path that is active on this thread; NULL while nothing is measured. Stays valid to the end of the
 * process and may be used from any thread. */
struct quipu_node *quipu_here(void);
/* Add to a metric of sum kind; set a metric of max kind to the larger. node may be NULL (nothing happens).
 * Safe from any thread. */
void quipu_add(struct quipu_node *node, enum quipu_metric metric, uint64_t value);
void quipu_max(struct quipu_node *node, enum quipu_metric metric, uint64_t value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
