#include "call.h"

int quipu_mpi_on = 0;

#ifdef SMPI_H
bool quipu_mpi_concurrent = false; /* one rank runs at a time */
#else
bool quipu_mpi_concurrent = true;
_Thread_local void *quipu_mpi_active_wrapper __attribute__((tls_model("initial-exec"))) = NULL;
#endif

void quipu_mpi_count_locked(struct quipu_node *node, int processes, uint64_t sent, uint64_t received, bool message_sent,
                            bool message_received) {
    if (sent)
        quipu_add(node, QUIPU_BYTES_SENT, sent);
    if (received)
        quipu_add(node, QUIPU_BYTES_RECEIVED, received);
    if (message_sent)
        quipu_add(node, QUIPU_MESSAGES_SENT, 1);
    if (message_received)
        quipu_add(node, QUIPU_MESSAGES_RECEIVED, 1);
    quipu_max(node, QUIPU_COMM_SIZE, (uint64_t)processes);
}
