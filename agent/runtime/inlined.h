/* SPDX-License-Identifier: Apache-2.0 */
/* inlined.h: the state of the runtime for the common cases of quipu_enter and quipu_exit. Inline functions in hot.h use
 * it, and the IR that the pass emits into functions (llvm_pass/hooks.cpp). */
#ifndef QUIPU_INLINED_H
#define QUIPU_INLINED_H

#include "quipu.h"

/* A link: the stored result of entering a region from a node, so that the next entry needs no search. */
struct quipu_link {
    struct quipu_node *from;
    uint64_t region;       /* id of the entered region */
    struct quipu_node *to; /* the node that becomes active */
    uint64_t *counters;    /* counters of the call path; if it has none, counters that nobody reads */
    uint64_t *visits;
    struct quipu_folded *folded; /* not NULL: the region counts with its caller (folding.cpp), with no table entry */
};

/* A node, which is a call path of one thread, in the mapped profile. It has the layout of quipu_profile_node, and then
 * the metrics. */
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

/* At every QUIPU_REVIEW_VISITS-th visit of a call path, the runtime decides whether its visits keep their time stamps
 * (budget.h). */
enum { QUIPU_TABLE_ENTRIES = 1024, QUIPU_REVIEW_VISITS = 1024 };

/* State of a thread in the mapped profile. It has the layout of quipu_profile_thread. */
struct quipu_thread {
    uint32_t location;
    uint32_t in_use;
    struct quipu_node *here;
    uint64_t last;
    struct quipu_frame *top; /* innermost active frame */
    struct quipu_frame *limit;
    /* Recently followed links. The link from a node (salt) to a region (hash) is at QUIPU_TABLE_INDEX(salt, hash), or
     * not in the table. No entry is NULL. A second table follows, with QUIPU_TABLE_ENTRIES entries: links that need no
     * clock, because the time of both nodes belongs to the same node. */
    struct quipu_link **table;
    uint64_t clock; /* enum quipu_profile_clock */
    void *own;      /* private to the runtime; NULL: the thread is not measured */
};

#define QUIPU_TABLE_INDEX(salt, hash) (((salt) + (hash)) & (QUIPU_TABLE_ENTRIES - 1))

/* Not 0 while this process is measured. Functions of which the pass made two versions then use the counted version. */
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    __attribute__((visibility("default"))) uint32_t quipu_measuring;

/* The state of this thread; NULL until the thread calls the runtime for the first time. */
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
 * then the innermost frame at the begin of the visit. If another frame is innermost at the end, the runtime must end
 * frames. For a visit with a clock, `top` is the address of its frame plus QUIPU_FRAMED. */
struct quipu_visit {
    uint64_t top;
    struct quipu_node *back; /* previously active node */
    struct quipu_node *here; /* active node; only if the function may call quipu_unwind_visit */
};
enum { QUIPU_FRAMED = 1 };

/* The copies of quipu_measuring, and of quipu_active_node (one per thread), in a program. The program accesses its
 * copies without the table of addresses (GOT) that variables of a library need. Libraries have no copies. Until the
 * runtime sets a copy of quipu_active_node, it is the address of an active node without links. A program first calls
 * quipu_know_program. A process may contain several programs. */
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

/* Slots. Each region of a program has one slot per thread. The slot contains the place of the link that needs no clock
 * and by which the thread entered the region last. The place is the distance from the thread pointer (fs), so that the
 * initial value of slots is 0 and programs need no relocation for them. At distance 0, the ABI stores the thread
 * pointer itself, which is never the active node. Links live as long as the process. One comparison, of `from` with the
 * active node, therefore decides whether the link is correct, whatever a signal handler did before. If it is not,
 * instrumented code calls the following functions. They preserve all registers except the register of the result
 * (calling convention preserve_all), so the common case saves none. x86-64 only. */
#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)
/* Returns the place of the link whose `visits` and `counters` belong to the visit; its address if `slot` is NULL. */
uint64_t quipu_count_missed(struct quipu_region *region, uint64_t *slot);
/* Begins the visit, and returns the counters of the call path. */
uint64_t *quipu_enter_missed(struct quipu_region *region, uint64_t *slot, struct quipu_visit *visit);
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
