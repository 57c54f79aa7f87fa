/* SPDX-License-Identifier: Apache-2.0 */
/* The signal of the samples, which the program may want for itself. */
#ifndef QUIPU_SIGNALS_H
#define QUIPU_SIGNALS_H

#include <signal.h>

namespace quipu {

using SignalHandler = void (*)(int, siginfo_t *, void *);

/* A signal that nobody uses, with this handler from here on; 0 if there is none. Under the lock. */
int take_signal(SignalHandler handler);
/* Whether it is still ours. */
bool has_signal(int signal);
/* Called when the program wants the signal, which is its own then. Not under the lock. */
void when_signal_is_wanted(void (*give_up)());

} // namespace quipu

#endif
