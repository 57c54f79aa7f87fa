/* SPDX-License-Identifier: Apache-2.0 */
/* The signal of the samples, which the program may need itself. */
#ifndef QUIPU_SIGNALS_H
#define QUIPU_SIGNALS_H

#include <signal.h>

namespace quipu {

using SignalHandler = void (*)(int, siginfo_t *, void *);

/* Takes an unused signal, and sets this handler. Returns 0 if there is none. Call under the lock. */
int take_signal(SignalHandler handler);
/* Returns whether the signal still belongs to the runtime. */
bool has_signal(int signal);
/* Sets the function to call when the program takes the signal. It is called without the lock. */
void when_signal_is_wanted(void (*give_up)());

} // namespace quipu

#endif
