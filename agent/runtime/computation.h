/* SPDX-License-Identifier: Apache-2.0 */
/* Records the work of a rank between two calls of MPI, for simulations by effort (computation.cpp). */
#ifndef QUIPU_COMPUTATION_H
#define QUIPU_COMPUTATION_H

#include "tree.h"

namespace quipu {

/* Whether QUIPU_RATES names a file of rates, from which simulated time is computed. */
extern bool by_effort;

/* Notes that a link was followed, so its counters may change. Call it only with by_effort. */
void note_visit(quipu_thread *thread, Link *link);
/* Notes that a node became active in another way. */
void note_node(quipu_thread *thread, Node *node);

} // namespace quipu

#endif
