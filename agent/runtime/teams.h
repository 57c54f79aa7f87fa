/* SPDX-License-Identifier: Apache-2.0 */
/* teams.h: parallel regions of OpenMP in simulated ranks, which the OpenMP library cannot tell of (ompt.cpp). */
#ifndef QUIPU_TEAMS_H
#define QUIPU_TEAMS_H

#include "tree.h"

namespace quipu {

/* Whether this is the linker name of the body of a parallel construct, as clang and flang name it. */
bool is_body(const char *name);
/* Before a rank of a shared process enters a region: where that is the body of a parallel construct, the region of the
 * construct is entered. */
void enter_construct(const quipu_thread *rank, quipu_region *body);
/* The frame, not the root, of a rank of a shared process that leaves a region, or that of the construct around it,
 * which ends with its body. */
quipu_frame *with_construct(quipu_frame *frame);

} // namespace quipu

#endif
