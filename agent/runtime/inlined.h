/* SPDX-License-Identifier: Apache-2.0 */
/* inlined.h: the state of the runtime for the common cases of quipu_enter and quipu_exit. Inline functions in hot.h use
 * it, and the IR that the pass emits into functions (llvm_pass/hooks.cpp). */
#ifndef QUIPU_INLINED_H
#define QUIPU_INLINED_H

#include "quipu.h"

/* The result of entering a region from a node. */
struct quipu_link {
    struct quipu_node *from;
    uint64_t region;       /* id of the entered region */
    struct quipu_node *to; /* the node that becomes active */
    uint64_t *counters;    /* counters of the call path; unused counters if it has no memory */
    uint64_t *visits;
    struct quipu_folded *folded; /* if not NULL, the region counts with its caller, and the link is not in the table */
};

/* A node in the mapped file. It begins like quipu_profile_node. */
struct quipu_node {
    uint32_t id;
    uint32_t parent;
    uint64_t region;
    struct quipu_node *up;
    uint64_t salt; /* see quipu_thread.table */
    uint64_t *counters;
    struct quipu_node **scopes; /* of a function: nodes of the functions that were inlined into it, or NULL */
    struct quipu_node *charged; /* the node that gets the time: this one, or a caller (budget.h) */
    uint64_t owner;             /* id of the node of the function that this one was inlined into; 0: none */
    uint64_t metrics[QUIPU_METRIC_COUNT];
};

/* At every QUIPU_REVIEW_VISITS-th visit of a call path, its hooks may lose their clock (budget.h). */
enum { QUIPU_TABLE_ENTRIES = 1024, QUIPU_REVIEW_VISITS = 1024 };

/* State of a thread in the mapped file. It begins like quipu_profile_thread. */
struct quipu_thread {
    uint32_t location;
    uint32_t in_use;
    struct quipu_node *here;
    uint64_t last;
    struct quipu_frame *top; /* innermost active frame */
    struct quipu_frame *limit;
    /* Recently followed links. The link from a node to a region is at QUIPU_TABLE_INDEX(salt, hash), or not in the
     * table. No entry is NULL. A second table contains links that need no clock, because both nodes charge the same
     * node. */
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

/* Points to `here` of this thread's state, never NULL. While quipu_current is NULL, it points to a state without
 * frames, whose active node has no links. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((visibility("default"),
                   tls_model("initial-exec"))) __thread struct quipu_node *const *quipu_active_node;

/* The local variable of a visit in a function with inline hooks.
 *
 * A visit without a clock has no frame: it activates the node of the link, and at its end the previous node. `top` is
 * then the innermost frame at the begin; if it differs at the end, frames are still open. Otherwise `top` is the frame
 * of the visit, with QUIPU_FRAMED. */
struct quipu_visit {
    uint64_t top;
    struct quipu_node *back; /* previously active node */
    struct quipu_node *here; /* active node; only if the function may call quipu_unwind_visit */
};
enum { QUIPU_FRAMED = 1 };

/* Copies of quipu_measuring, and per thread of quipu_active_node, in a program. The program accesses its copies without
 * a table of addresses. Libraries have no copies. Until the runtime sets a copy of quipu_active_node, it is the address
 * of an active node without links. A program first calls quipu_know_program. A process may contain several programs. */
struct quipu_program {
    struct quipu_program *next;
    uint32_t *measuring;
    struct quipu_node *const **(*active_node)(void); /* Returns the address of this thread's copy. */
};
#ifdef __cplusplus
extern "C"
#endif
    __attribute__((visibility("default"))) void
    quipu_know_program(struct quipu_program *program);

/* Slots. Each region of a program has one slot per thread. It points to the link without a clock that was followed last
 * to this region, or to a link whose `from` is NULL. Links live as long as the process. One comparison therefore
 * decides whether the link is correct, whatever a signal handler did before. If it is not, the pass calls these
 * functions. They preserve all registers except the register of the result (calling convention preserve_all), so the
 * common case saves none. x86-64 only. */
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)
struct quipu_link *quipu_count_missed(struct quipu_region *region, struct quipu_link **slot);
/* Begins the visit, and returns the counters of the call path. */
uint64_t *quipu_enter_missed(struct quipu_region *region, struct quipu_link **slot, struct quipu_visit *visit);
void quipu_exit_missed(struct quipu_visit *visit);
/* Ends a visit when an exception leaves it. */
void quipu_exit_visit(struct quipu_visit *visit);
/* Makes the region of this visit innermost again, like quipu_unwind. */
void quipu_unwind_visit(struct quipu_visit *visit);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
