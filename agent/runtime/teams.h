/* SPDX-License-Identifier: Apache-2.0 */
/* teams.h: parallel regions of OpenMP in simulated ranks, which the OpenMP library cannot report (ompt.cpp). */
#ifndef QUIPU_TEAMS_H
#define QUIPU_TEAMS_H

#include "tree.h"

namespace quipu {

/* Returns whether this is the linker name of the body of a parallel construct in clang or flang. */
bool is_body(const char *name);
/* Runs before a rank of a shared process enters a region. If the region is the body of a parallel construct, enters the
 * region of the construct. */
void enter_construct(const quipu_thread *rank, quipu_region *body);
/* Returns the frame to leave: `frame`, which is not the root, or the frame of the construct around it, which ends with
 * its body. */
quipu_frame *with_construct(quipu_frame *frame);

} // namespace quipu

#endif
