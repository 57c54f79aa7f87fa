/* Code that is not measured: it counts as always, where nobody looks. */
#ifndef QUIPU_IDLE_H
#define QUIPU_IDLE_H

#include "tree.h"

namespace quipu {

/* Counters that nobody reads, for code that runs unmeasured on this thread. */
uint64_t *idle_counters();
/* In a process that is not measured: the usual way, which the pass emits inline, becomes the way of this thread. */
void idle_thread();
/* Ends the frames above this one if it is of such a thread. */
void end_idle(Frame *frame);
/* Whether this is what idle_thread() made. */
inline bool is_idle(const quipu_thread *thread) { return !thread->own; }

} // namespace quipu

#endif
