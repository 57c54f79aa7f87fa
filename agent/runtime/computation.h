/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank does between two calls of MPI, noted for simulations by effort (computation.cpp). */
#ifndef QUIPU_COMPUTATION_H
#define QUIPU_COMPUTATION_H

#include "tree.h"

namespace quipu {

/* Whether QUIPU_RATES names rates, which give simulated time. */
extern bool by_effort;

/* A link was followed: the counters behind it may change. Only with by_effort. */
void note_visit(quipu_thread *thread, Link *link);
/* A node became active otherwise. */
void note_node(quipu_thread *thread, Node *node);

} // namespace quipu

#endif
