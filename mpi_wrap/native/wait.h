/* SPDX-License-Identifier: Apache-2.0 */
/* Separation of waiting from transfer: wait.c, and wait_smpi.c for simulated time. */
#ifndef QUIPU_MPI_WAIT_H
#define QUIPU_MPI_WAIT_H

#include "call.h"
#include "delays.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Calls shorter than the first constant have no waiting. Receives of at least the second constant (bytes) first wait
 * for the envelope. */
enum { QUIPU_MPI_WAIT_FLOOR_NS = 1000, QUIPU_MPI_LONG_MESSAGE = 1 << 16 };

/* Whether the metric wait_time is recorded. */
QUIPU_MPI_VARIABLE bool quipu_mpi_tell_waits;
/* Whether the metric was requested. It is not recorded without a clock. */
QUIPU_MPI_VARIABLE bool quipu_mpi_wait_mode_is_on;

/* Runs after MPI_Init: reads QUIPU_MPI_WAIT. Without MPI_COMM_WORLD (in a session) there are no probes. */
void quipu_mpi_choose_waits(bool world);
#ifndef SMPI_H
/* One of this number of collective calls is probed; 0: none. */
QUIPU_MPI_VARIABLE uint32_t quipu_mpi_probe_one_of;
QUIPU_MPI_VARIABLE uint64_t quipu_mpi_wait_floor; /* ticks */
/* Runs at the end. Writes the number and the cost of probes as attributes of the profile. */
void quipu_mpi_report_waits(void);
/* Adds the waiting of a call: its ticks minus the transfer time of its bytes. */
void quipu_mpi_waited(struct quipu_node *node, uint64_t ticks, uint64_t bytes);
/* Waits until a message can be received. Returns false if the probe failed; the receive itself then reports the error.
 */
bool quipu_mpi_await_message(struct quipu_node *node, int source, int tag, MPI_Comm comm);
/* Learns the transfer rate from the receive of a message that had arrived. */
void quipu_mpi_learn_rate(uint64_t ticks, uint64_t bytes);
/* Waits until all processes arrive at a collective operation, if this call is probed. */
void quipu_mpi_await_all(struct quipu_node *node, MPI_Comm comm);
/* Runs after a collective operation, which may have failed before it began (error). */
void quipu_mpi_collective_over(MPI_Comm comm, int error);

/* Return begin and end of the call; 0: waiting is not separated. */
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

/* Runs before a blocking receive into a buffer of this size. Returns whether it waited for the message. */
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
#else /* Waiting in simulated time, without probes. Moments are readings of quipu_ticks. */
struct quipu_mpi_message;
/* Creates the record of this rank's side of a message; NULL if waiting is not separated. The record is an argument of
 * one of the next two functions. */
struct quipu_mpi_message *quipu_mpi_message(bool receive, int peer, int tag, MPI_Comm comm);
/* Ends a blocking call that began at `begin`: it waited until the other side of its message had arrived. */
void quipu_mpi_waited_for(struct quipu_node *node, uint64_t begin, struct quipu_mpi_message *message,
                          struct quipu_mpi_message *other);
/* Stores the message of a request. */
void quipu_mpi_message_posted(MPI_Request handle, struct quipu_mpi_message *message);
/* Store the message of a persistent request, and its starts. */
void quipu_mpi_message_planned(MPI_Request handle, bool receive, int peer, int tag, MPI_Comm comm);
void quipu_mpi_messages_started(int count, const MPI_Request *handles);
/* Counts a whole call as waiting. */
void quipu_mpi_waited_all(struct quipu_node *node, uint64_t begin);
/* Run before and after a wait or test function. begin: 0 for test functions. */
struct quipu_mpi_pending {
    int count;
    MPI_Request *handles, few[32];
};
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
