/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals between synchronizations, and what others waited for (delays.cpp). */
#ifndef QUIPU_DELAYS_H
#define QUIPU_DELAYS_H

#include "tree.h"

namespace quipu {

/* Writes what was charged since the last time. Under the lock. */
void describe_delays();
/* In the child of a fork: it waits for nobody yet. */
void forget_delays();

} // namespace quipu

#endif
