/* SPDX-License-Identifier: Apache-2.0 */
/* call.h: how a wrapper enters and leaves the region of its function, and what it adds to its call path. */
#ifndef QUIPU_MPI_CALL_H
#define QUIPU_MPI_CALL_H

#include "hot.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Of this library (-fvisibility=hidden): reached without a look into a table of addresses. */
#define QUIPU_MPI_VARIABLE extern __attribute__((visibility("hidden")))

/* A function that is seldom called: its code is elsewhere. */
#define QUIPU_RARELY __attribute__((noinline, cold))

#ifdef SMPI_H
/* Ranks share the process and its threads. */
struct quipu_mpi_rank {
    void *runtime;                       /* the runtime's state of it */
    void *active_wrapper;                /* see call.h */
    struct quipu_mpi_partners *partners; /* see partners.c */
    double speed;                      /* simulated seconds that a second of computation here takes, 0 outside of MPI */
    double called;                     /* simulated time at which the last operation began, by effort */
    struct quipu_interval *since;      /* since all ranks were synchronized last */
    struct quipu_mpi_waits *waits;     /* what it waited for since then */
    struct quipu_mpi_arrival *awaited; /* who came to the operation that this rank is in, see wait_smpi.c */
};
/* The rank that runs; NULL if none does. */
struct quipu_mpi_rank *quipu_mpi_running(void);
/* Makes the actors the ranks of the runtime, before anything is measured. */
void quipu_mpi_share(void);
/* From now on what the rank computes takes simulated time. */
void quipu_mpi_begin_computing(struct quipu_mpi_rank *rank, double speed);
/* Before a function that takes simulated time: what was computed until now is simulated. */
void quipu_mpi_compute(void);
/* After it: simulated time goes on from here. */
void quipu_mpi_simulated(void);
#endif

/* A clock of this machine. */
static inline uint64_t quipu_mpi_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether wrappers do anything at all: measuring is on, and the process runs the MPI that this library is for. */
QUIPU_MPI_VARIABLE int quipu_mpi_on;
#ifdef SMPI_H
#define quipu_mpi_active_wrapper quipu_mpi_running()->active_wrapper
#else
/* What wrappers keep for each thread, in one cache line. */
struct quipu_mpi_thread {
    void *active_wrapper;      /* stack address of the wrapper that is active, NULL if none */
    struct quipu_frame *frame; /* which it has entered */
    struct quipu_node *node;   /* of the frame */
    /* The predefined datatype whose size was asked for last. It cannot be freed, so it keeps its size. */
    MPI_Datatype type; /* no handle at first; its size is 0, as that of a null handle */
    uint64_t size;
    /* The region that was entered last as a usual one, and what was active before: links stay as they are. */
    const struct quipu_region *region;
    const struct quipu_node *from;
    struct quipu_link *link;
} __attribute__((aligned(64)));
extern _Thread_local struct quipu_mpi_thread quipu_mpi_thread __attribute__((tls_model("initial-exec")));
#define quipu_mpi_active_wrapper quipu_mpi_thread.active_wrapper
#endif

/* True in a wrapper that the program called; false while nothing is measured and in calls that an MPI library
 * makes to itself or a callback makes, so that nothing counts twice. Addresses rather than a depth: an error
 * handler may leave a wrapper by longjmp, and the next wrapper further up the stack must not believe in it. */
QUIPU_INLINE bool quipu_mpi_outermost(void) {
    if (__builtin_expect(!quipu_mpi_on, 0))
        return false;
#ifdef SMPI_H
    if (quipu_mpi_running() == NULL)
        return false;
#endif
    return __builtin_frame_address(0) >= quipu_mpi_active_wrapper; /* NULL is below all */
}

/* Calls of MPI may run at the same time (MPI_THREAD_MULTIPLE, or nothing is known): counters need locked additions. */
QUIPU_MPI_VARIABLE bool quipu_mpi_concurrent;

/* The wrapper that is active. Reading the clock costs more than all else here: each of the two times is read once. */
struct quipu_mpi_call {
    struct quipu_frame *frame;
    struct quipu_node *node;
    uint64_t begin; /* quipu_ticks when the region was entered */
    uint64_t end;   /* after the call of MPI, if that was read; else 0 */
};

#ifdef SMPI_H
QUIPU_INLINE void quipu_mpi_end_abandoned(void) {}
QUIPU_INLINE void quipu_mpi_remember(const struct quipu_mpi_call *call) { (void)call; }
#else
/* Ends the region of a wrapper that was left by longjmp: what follows is not under it. */
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
/* The same in less code, for hundreds of functions that are called rarely. */
#define QUIPU_MPI_RARE_CALL(region) QUIPU_MPI_WRAPPER(quipu_enter, quipu_mpi_leave_rarely, region)

/* Adds to the node of the running call. A locked addition waits until all that MPI has just stored for the other
 * process has left the store buffer, so it is left to programs that need it. */
static inline void quipu_mpi_add(struct quipu_node *node, enum quipu_metric metric, uint64_t value) {
    if (__builtin_expect(quipu_mpi_concurrent, 0))
        quipu_add(node, metric, value);
    else
        quipu_add_alone(node, metric, value);
}

void quipu_mpi_count_locked(struct quipu_node *node, int processes, uint64_t sent, uint64_t received, bool message_sent,
                            bool message_received);

/* Counts for the running call; node is that of the call, NULL if nothing is measured. */
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
/* What most calls have in common: on MPI_COMM_WORLD, one thread in MPI at a time, no probes. In one cache line. */
struct quipu_mpi_usual {
    bool on; /* all of this holds, and wrappers are on */
    MPI_Comm world;
    uint64_t processes;
} __attribute__((aligned(64)));
QUIPU_MPI_VARIABLE struct quipu_mpi_usual quipu_mpi_usual;

/* Where entering the region leads from the active node, if that is known and another node; it is remembered. */
struct quipu_link *quipu_mpi_find_usual(const struct quipu_region *region);

/* Where the region is entered to, if the call is a usual one: of a datatype whose size is known, and entered from here
 * lately. Else NULL. */
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

/* As QUIPU_MPI_CALL. */
QUIPU_INLINE struct quipu_mpi_call quipu_mpi_enter_usual(const struct quipu_link *link, void *address) {
    struct quipu_thread *thread = quipu_current;
    struct quipu_mpi_call call = {NULL, link->to, 0, 0};
    quipu_mpi_active_wrapper = address;
    quipu_charge(thread, quipu_cycles());
    call.frame = quipu_push_link(thread, link);
    quipu_mpi_remember(&call);
    return call;
}
/* The end of the call was read if it returned: what is counted after that is in the time of the caller. */
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

/* Counts so many elements of the datatype as sent and as received. */
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
