/* SPDX-License-Identifier: Apache-2.0 */
/* call.h: functions with which a wrapper enters and leaves the region of its MPI function, and adds to the metrics of
 * the call path. Nodes (one for each call path), frames (one for each active region) and links (what a region entered
 * from a node leads to) are structures of the runtime (inlined.h). */
#ifndef QUIPU_MPI_CALL_H
#define QUIPU_MPI_CALL_H

#include "hot.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Declares a variable of this library that other libraries cannot see. Code accesses it without the global offset
 * table (GOT). */
#define QUIPU_MPI_VARIABLE extern __attribute__((visibility("hidden")))

/* A rarely called function. The compiler places its code in a separate section. */
#define QUIPU_RARELY __attribute__((noinline, cold))

#ifdef SMPI_H
/* State of a simulated rank. All ranks are in one process. */
struct quipu_mpi_rank {
    void *runtime;                       /* state of the rank in the runtime */
    void *active_wrapper;                /* stack address of the active wrapper of the rank; NULL: none */
    struct quipu_mpi_partners *partners; /* row of the communication matrix (partners.c) */
    double speed;  /* simulated seconds per second on the measured machine; 0: computation is not simulated now */
    double called; /* simulated time (s) at which the latest MPI call began, in a simulation by effort (smpi.c) */
    struct quipu_interval *since;        /* interval since the latest synchronization of all ranks */
    struct quipu_mpi_waits *waits;       /* causes of the waiting of the rank since this synchronization */
    struct quipu_mpi_critical *critical; /* clocks for the metric critical_blocks (critical_smpi.c) */
    struct quipu_mpi_arrival *awaited;   /* latest arrival of another rank at a message of this rank (wait_smpi.c) */
};
/* Returns the running rank; NULL if none runs, or if there is no memory. */
struct quipu_mpi_rank *quipu_mpi_running(void);
/* Registers the actors of SimGrid as ranks of the runtime. Call before measuring begins. */
void quipu_mpi_share(void);
/* Begins to simulate the computation of the rank. speed: as in struct quipu_mpi_rank. */
void quipu_mpi_begin_computing(struct quipu_mpi_rank *rank, double speed);
/* Simulates the computation of the running rank since its previous MPI call. Call before a function that takes
 * simulated time. */
void quipu_mpi_compute(void);
/* Call after a function that takes simulated time. The next computation begins here. */
void quipu_mpi_simulated(void);
#endif

/* Returns the real time in nanoseconds (CLOCK_MONOTONIC of this machine). */
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
    struct quipu_frame *frame; /* frame of the active wrapper in the runtime */
    struct quipu_node *node;   /* node of this frame */
    /* The predefined datatype of the latest size query, and its size. Predefined datatypes cannot be freed, so the size
     * never changes. */
    MPI_Datatype type; /* initially 0, which is not a handle */
    uint64_t size;     /* bytes */
    /* The latest call on the fast path. The runtime never changes a link. */
    const struct quipu_region *region; /* the region that was entered */
    const struct quipu_node *from;     /* the node that was active before */
    struct quipu_link *link;           /* the link from this node to the node of the region */
} __attribute__((aligned(64)));
extern _Thread_local struct quipu_mpi_thread quipu_mpi_thread __attribute__((tls_model("initial-exec")));
#define quipu_mpi_active_wrapper quipu_mpi_thread.active_wrapper
#endif

/* Returns true in a wrapper that the program called. Returns false while nothing is measured. Also returns false in a
 * wrapper that the MPI library or a callback called during another wrapper, so that nothing counts twice. Such an inner
 * wrapper has a lower stack address than the active wrapper. A counter of nested wrappers would be wrong after an error
 * handler has left a wrapper by longjmp. */
QUIPU_INLINE bool quipu_mpi_outermost(void) {
    if (__builtin_expect(!quipu_mpi_on, 0))
        return false;
#ifdef SMPI_H
    if (quipu_mpi_running() == NULL)
        return false;
#endif
    return __builtin_frame_address(0) >= quipu_mpi_active_wrapper; /* also true if there is none: NULL is the lowest */
}

/* Whether calls of MPI may run at the same time (MPI_THREAD_MULTIPLE, or unknown). Counters then need locked additions.
 */
QUIPU_MPI_VARIABLE bool quipu_mpi_concurrent;

/* A running call of a wrapper. Reading the clock takes longer than all other work of a wrapper. The clock is therefore
 * read only once at the beginning and once at the end. */
struct quipu_mpi_call {
    struct quipu_frame *frame;
    struct quipu_node *node;
    uint64_t begin; /* quipu_ticks when the region was entered */
    uint64_t end;   /* quipu_ticks after the call of MPI; 0: not read */
};

#ifdef SMPI_H
QUIPU_INLINE void quipu_mpi_end_abandoned(void) {}
QUIPU_INLINE void quipu_mpi_remember(const struct quipu_mpi_call *call) { (void)call; }
#else
/* Ends the region of a wrapper that was left by longjmp. Otherwise the region would be the caller of all later calls.
 */
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

/* Enters a region until the end of the block. The cleanup also runs if an error handler throws a C++ exception through
 * the wrapper. */
#define QUIPU_MPI_WRAPPER(enter, leave, region)                                                                        \
    quipu_mpi_end_abandoned();                                                                                         \
    quipu_mpi_active_wrapper = __builtin_frame_address(0);                                                             \
    __attribute__((cleanup(leave))) struct quipu_mpi_call call = {enter(region), NULL, 0, 0};                          \
    call.node = call.frame->node;                                                                                      \
    quipu_mpi_remember(&call);                                                                                         \
    call.begin = quipu_latest_ticks()
#define QUIPU_MPI_CALL(region) QUIPU_MPI_WRAPPER(quipu_enter_inline, quipu_mpi_leave, region)
/* Does the same with less code, for hundreds of rarely called functions. */
#define QUIPU_MPI_RARE_CALL(region) QUIPU_MPI_WRAPPER(quipu_enter, quipu_mpi_leave_rarely, region)

/* Adds to a metric of the node of the running call. The addition is locked only if several threads may call MPI at the
 * same time. A locked addition is slow: it waits until the data that MPI has just stored for another process has left
 * the store buffer of the processor. */
static inline void quipu_mpi_add(struct quipu_node *node, enum quipu_metric metric, uint64_t value) {
    if (__builtin_expect(quipu_mpi_concurrent, 0))
        quipu_add(node, metric, value);
    else
        quipu_add_alone(node, metric, value);
}

/* The same as quipu_mpi_count for a node that is not NULL, with locked additions. */
void quipu_mpi_count_locked(struct quipu_node *node, int processes, uint64_t sent, uint64_t received, bool message_sent,
                            bool message_received);

/* Counts bytes and messages of the running call. node: the node of the call; NULL if nothing is measured. processes:
 * number of processes of the communicator. sent, received: bytes. */
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
/* Data of the fast path, in one cache line. The fast path is for calls on MPI_COMM_WORLD, if only one thread at a time
 * calls MPI and no calls are probed (wait.c). */
struct quipu_mpi_usual {
    bool on;            /* whether the fast path may be used */
    MPI_Comm world;     /* MPI_COMM_WORLD */
    uint64_t processes; /* of MPI_COMM_WORLD */
} __attribute__((aligned(64)));
QUIPU_MPI_VARIABLE struct quipu_mpi_usual quipu_mpi_usual;

/* Returns the link from the active node to the region, and stores it for the next call. Returns NULL if the runtime has
 * no such link, or if the link leads to the active node itself. */
struct quipu_link *quipu_mpi_find_usual(const struct quipu_region *region);

/* Returns the link from the active node to the region if the call can use the fast path; otherwise NULL. The fast path
 * also requires that the size of the datatype is known, and that the region was entered from this node recently. */
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
/* Leaves a region on the fast path. The time after call->end, when MPI returned, belongs to the caller. */
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

/* Counts `count` elements of `size` bytes as sent and as received. */
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
