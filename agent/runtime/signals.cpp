// SPDX-License-Identifier: Apache-2.0
/* sigaction and signal on their way to the C library, as in threads.cpp: a program that sets a handler for the signal
 * of the samples gets the signal, and samples another one. Programs that are linked statically are not asked.
 * Sanitizers call these before they can watch anything. */
#include "signals.h"

#include "behind.h"
#include "tree.h"

#include <errno.h>

namespace quipu {
namespace {

/* Ignored unless there is a handler, so that a program that takes all its handlers away is not ended by a sample; and
 * not queued, so that one that blocks signals for long has one of them waiting at most. */
constexpr int candidates[] = {SIGURG, SIGWINCH};

SignalHandler ours;
int taken;
struct sigaction before; /* what the program has set for the signal, as far as it knows */
void (*give_up)();

#ifdef QUIPU_STATIC
QUIPU_BARE int real_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    return sigaction(number, action, old);
}
#else
QUIPU_BARE int real_sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    if (const Sigaction real = sigaction_behind())
        return real(number, action, old);
    errno = ENOSYS;
    return -1;
}
#endif

QUIPU_BARE bool has_no_handler(const struct sigaction &action) {
    return !(action.sa_flags & SA_SIGINFO) && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

} // namespace

int take_signal(SignalHandler handler) {
    for (const int candidate : candidates) {
        struct sigaction now = {}, action = {};
        action.sa_sigaction = handler;
        action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        sigfillset(&action.sa_mask);
        if (real_sigaction(candidate, nullptr, &now) != 0 || !has_no_handler(now) ||
            real_sigaction(candidate, &action, nullptr) != 0)
            continue;
        ours = handler;
        before = now;
        return taken = candidate;
    }
    return taken = 0;
}

bool has_signal(int signal) {
    struct sigaction now = {};
    return signal && real_sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == ours;
}

void when_signal_is_wanted(void (*callback)()) { give_up = callback; }

} // namespace quipu

#ifndef QUIPU_STATIC
extern "C" {

QUIPU_BARE __attribute__((visibility("default"))) int sigaction(int number, const struct sigaction *action,
                                                                struct sigaction *old) noexcept {
    using namespace quipu;
    if (!taken || number != taken)
        return real_sigaction(number, action, old);
    const struct sigaction shown = before;
    if (action && !has_no_handler(*action)) {
        give_up(); /* another signal is taken, or none */
        if (const int failed = real_sigaction(number, action, nullptr))
            return failed;
    } else if (action) {
        before = *action;
    }
    if (old)
        *old = shown;
    return 0;
}

/* Whether system calls start again after the handler is for the C library to say: siginterrupt() tells it. */
QUIPU_BARE __attribute__((visibility("default"))) sighandler_t signal(int number, sighandler_t handler) noexcept {
    using namespace quipu;
    const Signal real = signal_behind();
    if (!real) {
        errno = ENOSYS;
        return SIG_ERR;
    }
    if (!taken || number != taken || handler == SIG_ERR)
        return real(number, handler);
    const sighandler_t shown = before.sa_handler;
    if (handler != SIG_DFL && handler != SIG_IGN) {
        give_up();
        if (real(number, handler) == SIG_ERR)
            return SIG_ERR;
    } else {
        before = {};
        before.sa_handler = handler;
    }
    return shown;
}
}
#endif
