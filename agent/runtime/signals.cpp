// SPDX-License-Identifier: Apache-2.0
/* Intercepts sigaction and signal, like threads.cpp. If a program sets a handler for the signal of the samples, the
 * program gets this signal, and the samples use another one. Statically linked programs are not intercepted. Sanitizers
 * call these functions before they are initialized. */
#include "signals.h"

#include "behind.h"
#include "tree.h"

#include <errno.h>

namespace quipu {
namespace {

/* Signals that are ignored by default, so a program that resets its handlers does not die of a sample. They are not
 * queued, so at most one is pending in a program that blocks signals for long. */
constexpr int candidates[] = {SIGURG, SIGWINCH};

SignalHandler ours;
int taken;
struct sigaction before; /* the action of the program for this signal: default, or ignore */
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
        give_up(); /* uses another signal, or none */
        if (const int failed = real_sigaction(number, action, nullptr))
            return failed;
    } else if (action) {
        before = *action;
    }
    if (old)
        *old = shown;
    return 0;
}

/* The C library decides whether system calls restart after the handler (siginterrupt()). */
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
