/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

int quipu_mpi_on = 0;

#ifdef SMPI_H
bool quipu_mpi_concurrent = false; /* one rank runs at a time */
#else
bool quipu_mpi_concurrent = true;
_Thread_local struct quipu_mpi_thread quipu_mpi_thread __attribute__((tls_model("initial-exec")));
struct quipu_mpi_usual quipu_mpi_usual;

struct quipu_link *quipu_mpi_find_usual(const struct quipu_region *region) {
    struct quipu_mpi_thread *own = &quipu_mpi_thread;
    const struct quipu_thread *thread = quipu_current;
    struct quipu_link *link = quipu_known_link(thread, region);
    if (link == NULL || link->to == thread->here)
        return NULL;
    own->region = NULL; /* a signal handler may leave the code below by longjmp */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    own->from = thread->here;
    own->link = link;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    own->region = region;
    return link;
}

void quipu_mpi_end_region_left(void) {
    struct quipu_mpi_thread *own = &quipu_mpi_thread;
    const struct quipu_thread *thread = quipu_current;
    own->active_wrapper = NULL;
    /* An instrumented program may have ended this frame already (quipu_unwind). Another frame may now be at the same
     * address, but it then has another node. */
    if (thread != NULL && own->frame != NULL && own->frame <= thread->top && own->frame->node == own->node)
        quipu_exit(own->frame);
}
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
