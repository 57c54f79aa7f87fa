/* What a call adds to its call path. */
#ifndef QUIPU_MPI_COUNTS_H
#define QUIPU_MPI_COUNTS_H

#include "call.h"

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
