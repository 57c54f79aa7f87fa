/* call.h: how a wrapper enters and leaves the region of its function. */
#ifndef QUIPU_MPI_CALL_H
#define QUIPU_MPI_CALL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inlined.h"

#pragma GCC visibility push(hidden)

/* Whether wrappers do anything at all: measuring is on, and the process runs the MPI that this library is for. */
extern int quipu_mpi_on;
#ifdef SMPI_H
/* Ranks share the process and its threads (smpi.c). */
struct quipu_mpi_rank {
    void *runtime;        /* the runtime's state of it */
    void *active_wrapper; /* as below */
    double speed;         /* simulated seconds that a second of computation here takes, 0 outside of MPI */
};
/* The rank that runs; NULL if none does. */
struct quipu_mpi_rank *quipu_mpi_running(void);
#define quipu_mpi_active_wrapper quipu_mpi_running()->active_wrapper
#else
/* Stack address of the wrapper that is active on this thread, NULL if none. */
extern _Thread_local void *quipu_mpi_active_wrapper __attribute__((tls_model("initial-exec")));
#endif

/* True in a wrapper that the program called; false while nothing is measured and in calls that an MPI library
 * makes to itself or a callback makes, so that nothing counts twice. Addresses rather than a depth: an error
 * handler may leave a wrapper by longjmp, and the next wrapper further up the stack must not believe in it. */
static inline __attribute__((always_inline)) bool quipu_mpi_outermost(void) {
    if (__builtin_expect(!quipu_mpi_on, 0))
        return false;
#ifdef SMPI_H
    if (quipu_mpi_running() == NULL)
        return false;
#endif
    return __builtin_frame_address(0) >= quipu_mpi_active_wrapper; /* NULL is below all */
}

/* Calls of MPI may run at the same time (MPI_THREAD_MULTIPLE, or nothing is known): counters need locked additions. */
extern bool quipu_mpi_concurrent;

/* The wrapper that is active. Reading the clock costs more than all else here: each of the two times is read once. */
struct quipu_mpi_call {
    struct quipu_frame *frame;
    struct quipu_node *node;
    uint64_t begin; /* quipu_ticks when the region was entered */
    uint64_t end;   /* after the call of MPI, if that was read; else 0 */
};

#if defined(__x86_64__)
#define QUIPU_MPI_CYCLES __builtin_ia32_rdtsc()
#else
#define QUIPU_MPI_CYCLES quipu_ticks()
#endif

/* quipu_enter, quipu_exit and quipu_ticks, inline when nothing unusual happens (inlined.h). */
static inline __attribute__((always_inline)) struct quipu_frame *quipu_mpi_enter(struct quipu_region *region) {
    struct quipu_thread *thread = quipu_current;
    if (__builtin_expect(thread == NULL || thread->clock != QUIPU_CLOCK_TSC, 0))
        return quipu_enter(region);
    const struct quipu_link *link = thread->table[QUIPU_TABLE_INDEX(thread->here->salt, region->hash)];
    if (__builtin_expect(link->from != thread->here || link->region != region->id || link->to == thread->here ||
                             thread->top == thread->limit,
                         0))
        return quipu_enter(region);
    const uint64_t now = QUIPU_MPI_CYCLES;
    thread->here->metrics[QUIPU_TIME] += now - thread->last;
    thread->last = now;
    struct quipu_frame *frame = ++thread->top;
    frame->counters = link->counters;
    frame->node = thread->here = link->to;
    ++*link->visits;
    return frame;
}

static inline uint64_t quipu_mpi_ticks(void) {
    const struct quipu_thread *thread = quipu_current;
    return thread != NULL && thread->clock == QUIPU_CLOCK_TSC ? QUIPU_MPI_CYCLES : quipu_ticks();
}

static inline __attribute__((always_inline)) void quipu_mpi_leave(struct quipu_mpi_call *call) {
    struct quipu_thread *thread = quipu_current;
    struct quipu_frame *frame = call->frame;
    quipu_mpi_active_wrapper = NULL;
    if (__builtin_expect(thread == NULL || thread->top != frame || thread->clock != QUIPU_CLOCK_TSC ||
                             frame[-1].node == thread->here,
                         0)) {
        quipu_exit(frame);
        return;
    }
    const uint64_t now = call->end != 0 ? call->end : QUIPU_MPI_CYCLES;
    if (now > thread->last) { /* a signal handler may have been measured since `end` */
        thread->here->metrics[QUIPU_TIME] += now - thread->last;
        thread->last = now;
    }
    thread->top = frame - 1;
    thread->here = frame[-1].node;
}

static inline void quipu_mpi_leave_rarely(struct quipu_mpi_call *call) {
    quipu_mpi_active_wrapper = NULL;
    quipu_exit(call->frame);
}

/* The cleanup also runs when a C++ error handler throws through the wrapper. */
#define QUIPU_MPI_WRAPPER(enter, leave, region)                                                                        \
    quipu_mpi_active_wrapper = __builtin_frame_address(0);                                                             \
    __attribute__((cleanup(leave))) struct quipu_mpi_call call = {enter(region), NULL, 0, 0};                          \
    call.node = call.frame->node;                                                                                      \
    call.begin = quipu_current == NULL ? 0 : quipu_current->last
#define QUIPU_MPI_CALL(region) QUIPU_MPI_WRAPPER(quipu_mpi_enter, quipu_mpi_leave, region)
/* The same in less code, for hundreds of functions that are called rarely. */
#define QUIPU_MPI_RARE_CALL(region) QUIPU_MPI_WRAPPER(quipu_enter, quipu_mpi_leave_rarely, region)

#pragma GCC visibility pop
#endif
