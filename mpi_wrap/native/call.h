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

#ifdef SMPI_H
/* Ranks share the process and its threads. */
struct quipu_mpi_rank {
    void *runtime;                       /* the runtime's state of it */
    void *active_wrapper;                /* see call.h */
    struct quipu_mpi_partners *partners; /* see partners.c */
    double speed; /* simulated seconds that a second of computation here takes, 0 outside of MPI */
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
/* Stack address of the wrapper that is active on this thread, NULL if none. */
extern _Thread_local void *quipu_mpi_active_wrapper __attribute__((tls_model("initial-exec")));
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
    quipu_mpi_active_wrapper = __builtin_frame_address(0);                                                             \
    __attribute__((cleanup(leave))) struct quipu_mpi_call call = {enter(region), NULL, 0, 0};                          \
    call.node = call.frame->node;                                                                                      \
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

#endif
