/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long MPI calls wait for other processes (metric wait_time): wait.c, and wait_smpi.c under SMPI. */
#ifndef QUIPU_MPI_WAIT_H
#define QUIPU_MPI_WAIT_H

#include "call.h"
#include "delays.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* QUIPU_MPI_WAIT_FLOOR_NS: shorter calls count as calls without waiting. QUIPU_MPI_LONG_MESSAGE: before a receive into
 * a buffer of at least this number of bytes, MPI_Probe waits for the envelope of the message. */
enum { QUIPU_MPI_WAIT_FLOOR_NS = 1000, QUIPU_MPI_LONG_MESSAGE = 1 << 16 };

/* Whether the metric wait_time is recorded. */
QUIPU_MPI_VARIABLE bool quipu_mpi_tell_waits;
/* Whether the metric was requested (QUIPU_MPI_WAIT is not off). It is not recorded if there is no clock. */
QUIPU_MPI_VARIABLE bool quipu_mpi_wait_mode_is_on;

/* Runs after MPI_Init or MPI_Session_init: reads QUIPU_MPI_WAIT. world: whether MPI_COMM_WORLD exists. In an
 * MPI session it does not exist, and no collective operation is probed. */
void quipu_mpi_choose_waits(bool world);
#ifndef SMPI_H
/* One of this number of collective calls is probed; 0: none. */
QUIPU_MPI_VARIABLE uint32_t quipu_mpi_probe_one_of;
QUIPU_MPI_VARIABLE uint64_t quipu_mpi_wait_floor; /* QUIPU_MPI_WAIT_FLOOR_NS in ticks */
/* Runs after MPI_Finalize. Writes the number and the cost of probes as attributes of the profile. */
void quipu_mpi_report_waits(void);
/* Adds the waiting of a call to wait_time: its duration (ticks) minus the transfer time of its bytes. */
void quipu_mpi_waited(struct quipu_node *node, uint64_t ticks, uint64_t bytes);
/* Waits with MPI_Probe until a message can be received, and adds the time to wait_time. Returns false if it could not
 * wait; the receive itself then reports the error. */
bool quipu_mpi_await_message(struct quipu_node *node, int source, int tag, MPI_Comm comm);
/* Uses the duration (ticks) of a receive without waiting to estimate the transfer time of other messages. */
void quipu_mpi_learn_rate(uint64_t ticks, uint64_t bytes);
/* Waits until all processes arrive at a collective operation, if this call is probed. */
void quipu_mpi_await_all(struct quipu_node *node, MPI_Comm comm);
/* Runs after a collective operation. error: its error code. If the operation was not begun because of a wrong argument,
 * the probe counts for the next call. */
void quipu_mpi_collective_over(MPI_Comm comm, int error);

/* Return quipu_ticks at the begin and the end of a call; 0 if waiting is not recorded. awaited: whether
 * quipu_mpi_before_receive has waited, so that the receive itself begins only now. */
static inline uint64_t quipu_mpi_wait_begin(const struct quipu_mpi_call *call, bool awaited) {
    return !quipu_mpi_tell_waits ? 0 : awaited ? quipu_ticks_inline() : call->begin;
}

static inline uint64_t quipu_mpi_wait_end(struct quipu_mpi_call *call) {
    return quipu_mpi_tell_waits ? call->end = quipu_ticks_inline() : 0;
}

static inline void quipu_mpi_wait_between(struct quipu_node *node, uint64_t begin, uint64_t end, uint64_t bytes) {
    if (__builtin_expect(end - begin > quipu_mpi_wait_floor, 0))
        quipu_mpi_waited(node, end - begin, bytes);
}

/* Runs before a blocking receive into a buffer of this size. Returns whether it waited until the message arrived. */
static inline bool quipu_mpi_before_receive(struct quipu_node *node, uint64_t bytes, int source, int tag,
                                            MPI_Comm comm) {
    if (bytes < QUIPU_MPI_LONG_MESSAGE || !quipu_mpi_tell_waits || source == MPI_PROC_NULL)
        return false;
    return quipu_mpi_await_message(node, source, tag, comm);
}

static inline void quipu_mpi_after_receive(struct quipu_node *node, bool awaited, uint64_t begin, uint64_t end,
                                           uint64_t bytes) {
    if (!awaited)
        quipu_mpi_wait_between(node, begin, end, bytes);
    else if (bytes >= QUIPU_MPI_LONG_MESSAGE)
        quipu_mpi_learn_rate(end - begin, bytes);
}

static inline void quipu_mpi_before_collective(struct quipu_node *node, MPI_Comm comm) {
    if (__builtin_expect(quipu_mpi_probe_one_of != 0, 0))
        quipu_mpi_await_all(node, comm);
}

static inline void quipu_mpi_after_collective(MPI_Comm comm, int result) {
    if (__builtin_expect(quipu_mpi_probe_one_of != 0, 0))
        quipu_mpi_collective_over(comm, result);
}
#else /* SMPI: waiting in simulated time. begin: quipu_ticks when the call began, in ns of simulated time. */
struct quipu_mpi_message;
/* Records that the running rank posts a send or a receive. Pass the result to one of the next two functions. NULL:
 * waiting is not recorded, peer is MPI_PROC_NULL, or there is no memory. */
struct quipu_mpi_message *quipu_mpi_message(bool receive, int peer, int tag, MPI_Comm comm);
/* Runs after a blocking call, and adds its waiting: the call waited until both the send and the receive of its messages
 * were posted. other: the second message of MPI_Sendrecv, or NULL. */
void quipu_mpi_waited_for(struct quipu_node *node, uint64_t begin, struct quipu_mpi_message *message,
                          struct quipu_mpi_message *other);
/* Stores the message of a nonblocking operation. */
void quipu_mpi_message_posted(MPI_Request handle, struct quipu_mpi_message *message);
/* Stores the arguments of a persistent request. */
void quipu_mpi_message_planned(MPI_Request handle, bool receive, int peer, int tag, MPI_Comm comm);
/* Runs before persistent requests start, and creates a message for each of them. */
void quipu_mpi_messages_started(int count, const MPI_Request *handles);
/* Counts a whole call as waiting. */
void quipu_mpi_waited_all(struct quipu_node *node, uint64_t begin);
/* The requests of a wait or test function. handles: copy of the handles before the call, in `few` or allocated. */
struct quipu_mpi_pending {
    int count;
    MPI_Request *handles, few[32];
};
/* Run before and after a wait or test function. begin: 0 for test functions, which do not wait. */
void quipu_mpi_before_completion(struct quipu_mpi_pending *all, int count, const MPI_Request *handles);
void quipu_mpi_after_completion(struct quipu_mpi_pending *all, const MPI_Request *handles, struct quipu_node *node,
                                uint64_t begin);
/* Run before and after a collective operation; root: -1 if it has none. */
void quipu_mpi_arrive(MPI_Comm comm, enum quipu_mpi_awaited awaited, int root);
void quipu_mpi_depart(struct quipu_node *node, MPI_Comm comm, enum quipu_mpi_awaited awaited, int root, uint64_t begin);
/* Run before and after a synchronization of all processes of a window. */
void quipu_mpi_arrive_at_window(MPI_Win win);
void quipu_mpi_depart_from_window(struct quipu_node *node, MPI_Win win, uint64_t begin);
#endif

#endif
