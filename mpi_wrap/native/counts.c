#include "counts.h"

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
