/* inlined.h: what code that the pass emits into functions knows of the runtime: the way of quipu_enter and quipu_exit
 * when nothing unusual happens. llvm_pass/hooks.cpp writes the same in IR.
 */
#ifndef QUIPU_INLINED_H
#define QUIPU_INLINED_H

#include "profile_format.h"
#include "quipu.h"

/* Where entering a region leads from a node. */
struct quipu_link {
    struct quipu_node *from;
    uint64_t region;       /* id of the region that is entered */
    struct quipu_node *to; /* the node that is active then */
    uint64_t *counters;    /* of the call path; of nobody if there was no room for it */
    uint64_t *visits;
    struct quipu_link *next; /* from the same node */
};

/* In the mapped file; begins as quipu_profile_node. */
struct quipu_node {
    uint32_t id;
    uint32_t parent;
    uint64_t region;
    struct quipu_node *up;
    uint64_t salt; /* see quipu_thread.table */
    struct quipu_link *links;
    uint64_t *counters;
    struct quipu_node *outside; /* active in threads that begin here, while they are outside of all regions */
    uint64_t hidden[1];
    uint64_t metrics[QUIPU_METRIC_COUNT];
};

enum { QUIPU_TABLE_ENTRIES = 1024 };

/* State of a thread in the mapped file: begins as quipu_profile_thread. */
struct quipu_thread {
    uint32_t location;
    uint32_t in_use;
    struct quipu_node *here;
    uint64_t last;
    struct quipu_frame *top; /* innermost active frame */
    struct quipu_frame *limit;
    /* Links that were followed lately. The link from a node to a region is at QUIPU_TABLE_INDEX(salt, hash), or is not
     * in the table; no entry is NULL. */
    struct quipu_link **table;
    uint64_t clock; /* enum quipu_profile_clock */
    void *own;
};

/* In each program and library that the pass worked on, in the section QUIPU_MODULES; also in the plugin and in the
 * runtime themselves. */
struct quipu_module {
    uint32_t interface; /* quipu_interface() */
    char version[28];   /* of Quipu; empty: not known */
    char source[96];    /* a source file, for one; its end if it is long */
};

#define QUIPU_MODULES ".quipu.modules"

#define QUIPU_TABLE_INDEX(salt, hash) (((salt) + (hash)) & (QUIPU_TABLE_ENTRIES - 1))

/* NULL until the thread enters its first region, and in processes that are not measured. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((visibility("default"), tls_model("initial-exec"))) __thread struct quipu_thread *quipu_current;

#endif
