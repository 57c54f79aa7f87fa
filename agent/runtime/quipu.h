/* SPDX-License-Identifier: Apache-2.0 */
/* quipu.h: the interface of the runtime for instrumented code and user code. The MPI library and the hook of Python
 * also use quipu_runtime.h, and the reduction over MPI uses quipu_reduction.h.
 *
 * The runtime keeps one call tree per thread. Code enters and leaves regions. It adds numbers to the node of the active
 * call path, or to a stored node. The compiler pass, the PMPI library and user code use the same calls. Nothing is
 * measured or written unless the environment variable QUIPU_DIR names a folder (docs/environment.md). */
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

/* Static descriptor of a region. It lives as long as the program or library that contains it. `id` belongs to the
 * runtime and starts as 0. If the pass made the region, the descriptor has only QUIPU_MADE_REGION bytes: it ends after
 * `kind`, and its details contain the rest. Otherwise `details` and `slot` are zero. */
struct quipu_region {
    uint64_t id;
    uint64_t hash;        /* hash of the name; 0: the runtime computes it */
    int64_t details;      /* Offset in bytes from this region to its struct quipu_details if the pass made the region;
                             otherwise 0. If it is not 0, `line` is the index of the entry in the details, and
                             `scope_count` the index of the scope in the entry (0: the function). */
    uint32_t line;        /* line of the definition, 0 if unknown */
    uint32_t scope_count; /* number of scopes */
    uint32_t counters;    /* number of counters, at most QUIPU_MOST_COUNTERS */
    uint32_t hook;        /* enum quipu_hook */
    uint32_t slot;        /* number of the slot of a region that the pass made (inlined.h) */
    uint32_t kind;        /* enum quipu_kind, and QUIPU_PACKED */
    const char *name;     /* linker name (MANGLED in filters) */
    const char *display;  /* readable name; NULL if it equals name */
    const char *file;     /* source file, NULL if unknown */
    const void *weights;  /* Rows of QUIPU_WEIGHTED int64_t. Row 0: effort of one visit; row i + 1: effort per unit of
                             counter i. With QUIPU_PACKED in `kind`, the rows are packed, and have a further column: the
                             additions that counting executes. */
    struct quipu_scope *scopes; /* the function, then the functions that were inlined into it */
};
enum { QUIPU_MADE_REGION = 48 };

/* Names, weights and scopes of the functions of one file, written by the pass. entries: number of functions. packed:
 * bytes of `data`; size: bytes of the uncompressed data. If `packed` is less than `size`, zlib has compressed the data
 * (agent/runtime/details.cpp). */
struct quipu_details {
    uint32_t size;
    uint32_t packed;
    uint32_t entries;
    uint8_t data[];
};

/* A function that was inlined into another function. Its effort follows from the counters of the other function. The
 * first scope is the function itself, including its inlined recursive calls, and has no name. Parents come before
 * children. */
struct quipu_scope {
    struct quipu_region region; /* without weights */
    uint32_t parent;            /* index of the scope that it was inlined into */
    uint32_t count;             /* number of rows */
    /* Each row: the index of a row in the weights of the whole function, then how much of it belongs to this scope
     * (visits, then effort). Empty rows are left out. Packed. */
    const uint8_t *rows;
};
/* Format of a packed row, written by the pass: a bit mask of the columns that are not 0 (ULEB128), then their values
 * (SLEB128). A row of a scope begins with the index of the row (ULEB128) and the visits (SLEB128). */
enum { QUIPU_PACKED = 0x100 /* added to the kind of a region */ };
enum { QUIPU_SCOPE_ROW = 2 + QUIPU_WEIGHTED };

struct quipu_node; /* a call path of one thread */

/* An active region, and the counters of its call path, to which instrumented code adds. */
struct quipu_frame {
    uint64_t *counters;
    struct quipu_node *node;
    struct quipu_node *back; /* the call path that was active before */
};

/* Enters a region and returns its frame, never NULL. The frame is valid until quipu_exit of it or of an outer frame. */
struct quipu_frame *quipu_enter(struct quipu_region *region);
/* Leaves the region of this frame. Frames above it (left by longjmp or by an exception through foreign code) end first.
 */
void quipu_exit(struct quipu_frame *frame);
/* Counts a visit of a region that is not entered and left (enum quipu_hook), and returns its counters. */
uint64_t *quipu_count(struct quipu_region *region);
/* Makes a call path active without counting a visit. If `path` belongs to another thread, its copy in this thread
 * becomes active. quipu_exit of the returned frame restores the call path that was active before. */
struct quipu_frame *quipu_attach(struct quipu_node *path);
/* Ends all frames above this frame. Call it if control came back to this frame without returns (second return of
 * setjmp). */
void quipu_unwind(struct quipu_frame *frame);
/* Returns the innermost active frame of this thread: the argument of quipu_unwind in functions without a region. */
struct quipu_frame *quipu_top(void);
/* quipu_effort counts a block of code in a scope of an entered function; work: visits, then one number per weighted
 * metric. quipu_moved counts the bytes of a transfer whose length is known at run time only. The reference
 * implementation, with which tests compare counters and weights, uses only these functions. */
void quipu_effort(struct quipu_region *function, uint64_t scope, const int64_t *work);
void quipu_moved(struct quipu_region *function, uint64_t scope, uint64_t bytes_loaded, uint64_t bytes_stored);

/* Every instrumented program and library calls this function first when it is loaded. If its pass and this runtime do
 * not fit, the process ends with one line that explains what to do. The interface of this function never changes. */
struct quipu_module;
void quipu_check(const struct quipu_module *module);

/* Returns 1 while this process is measured. */
int quipu_active(void);
/* Returns the active call path of this thread; NULL while nothing is measured. It is valid until the end of the process
 * and may be used from any thread. */
struct quipu_node *quipu_here(void);
/* quipu_add adds to a metric with `sum` in metrics.def. quipu_max raises a metric with `max` to the value, if it is
 * larger. If node is NULL, nothing happens. Safe from any thread. */
void quipu_add(struct quipu_node *node, enum quipu_metric metric, uint64_t value);
void quipu_max(struct quipu_node *node, enum quipu_metric metric, uint64_t value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
