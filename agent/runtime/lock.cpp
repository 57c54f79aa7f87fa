// SPDX-License-Identifier: Apache-2.0
/* The lock of everything that happens rarely, and what must not come between.
 *
 * A handler that leaves by siglongjmp, ends the process or forks would leave the lock behind, so signals wait while it
 * is held; that costs system calls only where something is made for the first time. Signals that the program makes by a
 * mistake of its own cannot wait. There is one that could come here, by a stack that is used up: the stack is looked at
 * before the lock is taken.
 */
#include "tree.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace quipu {
namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
__thread bool held; /* by this thread */

/* Of who holds the lock. */
uint64_t signals;
int error_number;

bool frozen; /* see forgo_system_calls() */

constexpr uint64_t bit(int signal) { return uint64_t{1} << (signal - 1); }
/* All but those that are sent for a mistake of the running code: the kernel ends the process if they are blocked. */
constexpr uint64_t waiting = ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS));

/* Not sigprocmask, which leaves out the signals by which threads are cancelled. */
QUIPU_BARE uint64_t change_signals(int how, uint64_t set) {
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, &set, &before, sizeof before);
    return before;
}

/* More than what is done under the lock needs. */
constexpr size_t stack_needed = size_t{24} << 10;

/* For call paths that come when there are no system calls any more. */
constexpr size_t kept_for_later = size_t{1} << 20;

QUIPU_BARE __attribute__((noinline)) void touch_stack() {
    constexpr size_t page = 4096;
    volatile char room[stack_needed];
    for (size_t at = sizeof room; at >= page; at -= page)
        room[at - page] = 0;
}

/* A stack for signals may be as small as it likes: what has always fitted there will fit. Asked in a function of its
 * own, as a call out of touch_stack() writes below all of its room. */
QUIPU_BARE bool on_stack_for_signals() {
    stack_t other;
    return sigaltstack(nullptr, &other) != 0 || (other.ss_flags & SS_ONSTACK);
}

} // namespace

QUIPU_BARE void lock() {
    const int error = errno;
    uint64_t before = 0;
    if (!frozen) {
        if (!on_stack_for_signals())
            touch_stack();
        before = change_signals(SIG_BLOCK, waiting);
    }
    pthread_mutex_lock(&mutex);
    held = true;
    signals = before;
    error_number = error;
}

QUIPU_BARE void unlock() {
    const uint64_t before = signals;
    const int error = error_number;
    held = false;
    pthread_mutex_unlock(&mutex);
    if (!frozen)
        change_signals(SIG_SETMASK, before);
    errno = error;
}

bool is_locked_here() { return held; }

bool may_call_system() { return !frozen; }

void forgo_system_calls() {
    const Locked locked;
    if (frozen)
        return;
    stop_sampling();
    profile.freeze();
    keep_more(kept_for_later);
    change_signals(SIG_SETMASK, signals);
    frozen = true;
}

} // namespace quipu
