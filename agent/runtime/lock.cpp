// SPDX-License-Identifier: Apache-2.0
/* The lock for all rare operations.
 *
 * A signal handler that leaves with siglongjmp, ends the process or forks would not release the lock. Signals are
 * therefore blocked while the lock is held. This takes system calls, but the lock is taken rarely: for example, when a
 * call path appears for the first time. Signals for errors of the running code cannot be blocked. The only such error
 * that can occur under the lock is a stack overflow. The stack is therefore touched before the lock is taken. */
#include "tree.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace quipu {
namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
__thread bool held; /* whether this thread holds the lock */

/* Signal mask and errno of the holder of the lock, from before it took the lock. */
uint64_t signals;
int error_number;

bool frozen; /* see forgo_system_calls() */

constexpr uint64_t bit(int signal) { return uint64_t{1} << (signal - 1); }
/* All signals except signals for errors of the running code: the kernel ends the process if these are blocked. */
constexpr uint64_t waiting = ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS));

/* Changes the signal mask by a system call, because sigprocmask does not block the signals that cancel threads. */
QUIPU_BARE uint64_t change_signals(int how, uint64_t set) {
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, how, &set, &before, sizeof before);
    return before;
}

/* More stack than the code under the lock needs. */
constexpr size_t stack_needed = size_t{24} << 10;

/* Memory for call paths that appear when system calls are no longer possible. */
constexpr size_t kept_for_later = size_t{1} << 20;

QUIPU_BARE __attribute__((noinline)) void touch_stack() {
    constexpr size_t page = 4096;
    volatile char room[stack_needed];
    for (size_t at = sizeof room; at >= page; at -= page)
        room[at - page] = 0;
}

/* Returns whether the code runs on an alternate signal stack. Such a stack may be small, and is not checked. Not a
 * part of touch_stack(), because a call there would use the stack below its large array. */
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
