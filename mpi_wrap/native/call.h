/* SPDX-License-Identifier: Apache-2.0 */
/* call.h: functions with which a wrapper enters and leaves the region of its function, and adds to its call path. */
#ifndef QUIPU_MPI_CALL_H
#define QUIPU_MPI_CALL_H

#include "hot.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* A variable of this library (-fvisibility=hidden), which is accessed without a table of addresses. */
#define QUIPU_MPI_VARIABLE extern __attribute__((visibility("hidden")))

/* A rarely called function, whose code is placed elsewhere. */
#define QUIPU_RARELY __attribute__((noinline, cold))

#ifdef SMPI_H
/* State of a simulated rank. Ranks share the process and its threads. */
struct quipu_mpi_rank {
    void *runtime;                       /* state of the rank in the runtime */
    void *active_wrapper;                /* see call.h */
    struct quipu_mpi_partners *partners; /* see partners.c */
    double speed;                        /* simulated seconds per second of computation here; 0 outside of MPI */
    double called;                       /* simulated time at which the last operation began, by effort */
    struct quipu_interval *since;        /* since all ranks were synchronized last */
    struct quipu_mpi_waits *waits;       /* causes of its waiting since then */
    struct quipu_mpi_critical *critical; /* blocks that it waits for, see critical_smpi.c */
    struct quipu_mpi_arrival *awaited;   /* arrivals at the operation that this rank is in, see wait_smpi.c */
};
/* Returns the running rank; NULL if none runs. */
struct quipu_mpi_rank *quipu_mpi_running(void);
/* Registers the actors as ranks of the runtime, before measuring begins. */
void quipu_mpi_share(void);
/* Begins to simulate the computation of the rank. */
void quipu_mpi_begin_computing(struct quipu_mpi_rank *rank, double speed);
/* Simulates the computation since the last call. Call before a function that takes simulated time. */
void quipu_mpi_compute(void);
/* Call after such a function. Simulated time continues from here. */
void quipu_mpi_simulated(void);
#endif

/* A clock of this machine. */
static inline uint64_t quipu_mpi_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether the wrappers are on: measuring is on, and the process runs the MPI library that this library was built for.
 */
QUIPU_MPI_VARIABLE int quipu_mpi_on;
#ifdef SMPI_H
#define quipu_mpi_active_wrapper quipu_mpi_running()->active_wrapper
#else
/* State of a thread in the wrappers, in one cache line. */
struct quipu_mpi_thread {
    void *active_wrapper;      /* stack address of the active wrapper; NULL: none */
    struct quipu_frame *frame; /* its frame */
    struct quipu_node *node;   /* node of the frame */
    /* The predefined datatype of the latest size query. It cannot be freed, so its size is constant. */
    MPI_Datatype type; /* 0 at first, which is no handle; its size is 0, like the size of a null handle */
    uint64_t size;
    /* The region of the latest call on the fast path, and the node that was active before. Links do not change. */
    const struct quipu_region *region;
    const struct quipu_node *from;
    struct quipu_link *link;
} __attribute__((aligned(64)));
extern _Thread_local struct quipu_mpi_thread quipu_mpi_thread __attribute__((tls_model("initial-exec")));
#define quipu_mpi_active_wrapper quipu_mpi_thread.active_wrapper
#endif

/* Returns true in a wrapper that the program called. Returns false while nothing is measured, and in calls from an MPI
 * library or from a callback, so that nothing counts twice. The comparison uses addresses instead of a depth, because
 * an error handler may leave a wrapper by longjmp, and the next wrapper further up the stack has to detect this. */
QUIPU_INLINE bool quipu_mpi_outermost(void) {
    if (__builtin_expect(!quipu_mpi_on, 0))
        return false;
#ifdef SMPI_H
    if (quipu_mpi_running() == NULL)
        return false;
#endif
    return __builtin_frame_address(0) >= quipu_mpi_active_wrapper; /* NULL is below all */
}

/* Whether calls of MPI may run at the same time (MPI_THREAD_MULTIPLE, or unknown). Counters then need locked additions.
 */
QUIPU_MPI_VARIABLE bool quipu_mpi_concurrent;

/* A running call. Reading the clock costs more than all other work here, so begin and end are read once. */
struct quipu_mpi_call {
    struct quipu_frame *frame;
    struct quipu_node *node;
    uint64_t begin; /* quipu_ticks when the region was entered */
    uint64_t end;   /* quipu_ticks after the call of MPI, or 0 if it was not read */
};

#ifdef SMPI_H
QUIPU_INLINE void quipu_mpi_end_abandoned(void) {}
QUIPU_INLINE void quipu_mpi_remember(const struct quipu_mpi_call *call) { (void)call; }
#else
/* Ends the region of a wrapper that was left by longjmp, because later calls are not below it. */
void quipu_mpi_end_region_left(void);
QUIPU_INLINE void quipu_mpi_end_abandoned(void) {
    if (__builtin_expect(quipu_mpi_active_wrapper != NULL, 0))
        quipu_mpi_end_region_left();
}
QUIPU_INLINE void quipu_mpi_remember(const struct quipu_mpi_call *call) {
    quipu_mpi_thread.frame = call->frame;
    quipu_mpi_thread.node = call->node;
}
#endif

QUIPU_INLINE void quipu_mpi_leave(struct quipu_mpi_call *call) {
    quipu_mpi_active_wrapper = NULL;
    quipu_exit_inline(call->frame, call->end);
}

static inline void quipu_mpi_leave_rarely(struct quipu_mpi_call *call) {
    quipu_mpi_active_wrapper = NULL;
    quipu_exit(call->frame);
}

/* The cleanup also runs when a C++ error handler throws through the wrapper. */
#define QUIPU_MPI_WRAPPER(enter, leave, region)                                                                        \
    quipu_mpi_end_abandoned();                                                                                         \
    quipu_mpi_active_wrapper = __builtin_frame_address(0);                                                             \
    __attribute__((cleanup(leave))) struct quipu_mpi_call call = {enter(region), NULL, 0, 0};                          \
    call.node = call.frame->node;                                                                                      \
    quipu_mpi_remember(&call);                                                                                         \
    call.begin = quipu_latest_ticks()
#define QUIPU_MPI_CALL(region) QUIPU_MPI_WRAPPER(quipu_enter_inline, quipu_mpi_leave, region)
/* The same with less code, for hundreds of rarely called functions. */
#define QUIPU_MPI_RARE_CALL(region) QUIPU_MPI_WRAPPER(quipu_enter, quipu_mpi_leave_rarely, region)

/* Adds to the node of the running call. A locked addition waits until all stores of MPI for the other process have left
 * the store buffer. Only programs that need locked additions use them. */
static inline void quipu_mpi_add(struct quipu_node *node, enum quipu_metric metric, uint64_t value) {
    if (__builtin_expect(quipu_mpi_concurrent, 0))
        quipu_add(node, metric, value);
    else
        quipu_add_alone(node, metric, value);
}

void quipu_mpi_count_locked(struct quipu_node *node, int processes, uint64_t sent, uint64_t received, bool message_sent,
                            bool message_received);

/* Counts for the running call. node: the node of the call; NULL if nothing is measured. */
static inline void quipu_mpi_count(struct quipu_node *node, int processes, uint64_t sent, uint64_t received,
                                   bool message_sent, bool message_received) {
    if (node == NULL)
        return;
    if (__builtin_expect(quipu_mpi_concurrent, 0)) {
        quipu_mpi_count_locked(node, processes, sent, received, message_sent, message_received);
        return;
    }
    quipu_add_alone(node, QUIPU_BYTES_SENT, sent);
    quipu_add_alone(node, QUIPU_BYTES_RECEIVED, received);
    quipu_add_alone(node, QUIPU_MESSAGES_SENT, message_sent);
    quipu_add_alone(node, QUIPU_MESSAGES_RECEIVED, message_received);
    quipu_max_alone(node, QUIPU_COMM_SIZE, (uint64_t)processes);
}

#ifndef SMPI_H
/* The conditions of the fast path: MPI_COMM_WORLD, one thread in MPI at a time, no probes. In one cache line. */
struct quipu_mpi_usual {
    bool on; /* all conditions hold, and wrappers are on */
    MPI_Comm world;
    uint64_t processes;
} __attribute__((aligned(64)));
QUIPU_MPI_VARIABLE struct quipu_mpi_usual quipu_mpi_usual;

/* Returns and stores the link from the active node to the region, if it is known and leads to another node. */
struct quipu_link *quipu_mpi_find_usual(const struct quipu_region *region);

/* Returns the link to the region if the call meets the conditions of the fast path: the size of its datatype is known,
 * and the region was recently entered from here. Otherwise returns NULL. */
QUIPU_INLINE struct quipu_link *quipu_mpi_usual_link(const struct quipu_region *region, MPI_Comm comm,
                                                     MPI_Datatype datatype) {
    const struct quipu_thread *thread = quipu_current;
    if (__builtin_expect(!quipu_mpi_usual.on || comm != quipu_mpi_usual.world || datatype != quipu_mpi_thread.type ||
                             quipu_mpi_active_wrapper != NULL || !quipu_counts_cycles(thread) ||
                             thread->top == thread->limit,
                         0))
        return NULL;
    const struct quipu_mpi_thread *own = &quipu_mpi_thread;
    if (__builtin_expect(own->from == thread->here && own->region == region, 1))
        return own->link;
    return quipu_mpi_find_usual(region);
}

/* Enters a region on the fast path, like QUIPU_MPI_CALL. */
QUIPU_INLINE struct quipu_mpi_call quipu_mpi_enter_usual(const struct quipu_link *link, void *address) {
    struct quipu_thread *thread = quipu_current;
    struct quipu_mpi_call call = {NULL, link->to, 0, 0};
    quipu_mpi_active_wrapper = address;
    quipu_charge(thread, quipu_cycles());
    call.frame = quipu_push_link(thread, link);
    quipu_mpi_remember(&call);
    return call;
}
/* Leaves a region on the fast path. The clock was read when the call returned; later work counts for the caller. */
QUIPU_INLINE void quipu_mpi_leave_usual(struct quipu_mpi_call *call) {
    struct quipu_thread *thread = quipu_current;
    quipu_mpi_active_wrapper = NULL;
    if (__builtin_expect(call->end == 0 || thread == NULL || thread->top != call->frame, 0)) {
        quipu_exit(call->frame);
        return;
    }
    quipu_charge(thread, call->end);
    quipu_activate(thread, call->frame - 1, call->frame->back);
}
#define QUIPU_MPI_USUAL_CALL(link)                                                                                     \
    __attribute__((cleanup(quipu_mpi_leave_usual))) struct quipu_mpi_call call =                                       \
        quipu_mpi_enter_usual(link, __builtin_frame_address(0))

/* Counts this number of elements of the datatype as sent and as received. */
QUIPU_INLINE void quipu_mpi_count_usual(struct quipu_node *node, int64_t count, uint64_t size) {
    const uint64_t bytes = count > 0 ? (uint64_t)count * size : 0;
    quipu_add_alone(node, QUIPU_BYTES_SENT, bytes);
    quipu_add_alone(node, QUIPU_BYTES_RECEIVED, bytes);
    quipu_add_alone(node, QUIPU_MESSAGES_SENT, bytes > 0);
    quipu_add_alone(node, QUIPU_MESSAGES_RECEIVED, bytes > 0);
    quipu_max_alone(node, QUIPU_COMM_SIZE, quipu_mpi_usual.processes);
}
#endif

#endif
