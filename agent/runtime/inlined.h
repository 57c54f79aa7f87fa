/* SPDX-License-Identifier: Apache-2.0 */
/* inlined.h: the state of the runtime that the usual way of quipu_enter and quipu_exit works on, when nothing unusual
 * happens: as inline functions in hot.h, and as IR that the pass emits into functions (llvm_pass/hooks.cpp).
 */
#ifndef QUIPU_INLINED_H
#define QUIPU_INLINED_H

#include "quipu.h"

/* Where entering a region leads from a node. */
struct quipu_link {
    struct quipu_node *from;
    uint64_t region;       /* id of the region that is entered */
    struct quipu_node *to; /* the node that is active then */
    uint64_t *counters;    /* of the call path; of nobody if there was no room for it */
    uint64_t *visits;
    struct quipu_folded *folded; /* NULL; else the region counts with its caller, and the link is not in the table */
};

/* In the mapped file; begins as quipu_profile_node. */
struct quipu_node {
    uint32_t id;
    uint32_t parent;
    uint64_t region;
    struct quipu_node *up;
    uint64_t salt; /* see quipu_thread.table */
    uint64_t *counters;
    struct quipu_node **scopes; /* of a function: the nodes of what was inlined into it; NULL if nothing was */
    struct quipu_node *charged; /* whose time what passes here is: itself, or a caller if its own time costs too much */
    uint64_t owner;             /* id of the node of the function that this was inlined into; 0: none */
    uint64_t metrics[QUIPU_METRIC_COUNT];
};

/* At visits of a call path that are a multiple of the last its hooks may lose their clock (budget.h). */
enum { QUIPU_TABLE_ENTRIES = 1024, QUIPU_REVIEW_VISITS = 1024 };

/* State of a thread in the mapped file: begins as quipu_profile_thread. */
struct quipu_thread {
    uint32_t location;
    uint32_t in_use;
    struct quipu_node *here;
    uint64_t last;
    struct quipu_frame *top; /* innermost active frame */
    struct quipu_frame *limit;
    /* Links that were followed lately. The link from a node to a region is at QUIPU_TABLE_INDEX(salt, hash), or is not
     * in the table; no entry is NULL. A second table follows, of links that need no clock: both nodes have one time. */
    struct quipu_link **table;
    uint64_t clock; /* enum quipu_profile_clock */
    void *own;      /* private to the runtime; NULL: nothing is measured */
};

#define QUIPU_TABLE_INDEX(salt, hash) (((salt) + (hash)) & (QUIPU_TABLE_ENTRIES - 1))

/* Not 0 while this process is measured: functions of which the pass made two versions use the counted one. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((visibility("default"))) uint32_t quipu_measuring;

/* NULL until the thread enters its first region, and in processes that are not measured. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((visibility("default"), tls_model("initial-exec"))) __thread struct quipu_thread *quipu_current;

/* Points to `here` of this thread's state, never NULL: while quipu_current is NULL, to that of a state whose active
 * node has no links and which has no frames. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((visibility("default"),
                   tls_model("initial-exec"))) __thread struct quipu_node *const *quipu_active_node;

/* What a function keeps of a visit on its stack, if the usual way of entering is inline. Without a clock it has no
 * frame: it activates the node of the link, and at its end the one before. Then `top` is the innermost frame meanwhile,
 * and another one at the end says that frames are open. Else `top` is its own frame, with QUIPU_FRAMED. */
struct quipu_visit {
    uint64_t top;
    struct quipu_node *back; /* what was active before */
    struct quipu_node *here; /* what is active; only if the function may call quipu_unwind_visit */
};
enum { QUIPU_FRAMED = 1 };

/* Programs, and not libraries, have copies of quipu_measuring and, per thread, of quipu_active_node, which they reach
 * without a look into a table of addresses. A copy of the latter that the runtime did not set yet is the address of an
 * active node without links. A program calls quipu_know_program before anything else; more than one can be in a
 * process.
 */
struct quipu_program {
    struct quipu_program *next;
    uint32_t *measuring;
    struct quipu_node *const **(*active_node)(void); /* the address of this thread's copy */
};
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) void
    quipu_know_program(struct quipu_program *program);

/* Each function of a program has a slot per thread, which points to the link without a clock that the function followed
 * last, or to one whose `from` is NULL. Links live as long as the process, so that one comparison says whether the link
 * is the one to follow, whatever a signal handler did before. If not, the pass calls these functions. They preserve all
 * registers but the one of their result (calling convention preserve_all), so that the usual way saves none. x86-64
 * only. */
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)
struct quipu_link *quipu_count_missed(struct quipu_region *region, struct quipu_link **slot);
/* Returns the link to follow, or, with QUIPU_FRAMED, the frame of the region, which is active then. */
uint64_t quipu_enter_missed(struct quipu_region *region, struct quipu_link **slot);
void quipu_exit_missed(struct quipu_visit *visit);
/* The same at the end of an exception that passes by. */
void quipu_exit_visit(struct quipu_visit *visit);
/* quipu_unwind: the region of this visit is the innermost one again. */
void quipu_unwind_visit(struct quipu_visit *visit);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
