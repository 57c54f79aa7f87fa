/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the C library that this library intercepts, for calls from the interceptors. */
#ifndef QUIPU_BEHIND_H
#define QUIPU_BEHIND_H

#include "profile.h"

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <ucontext.h>

namespace quipu {

using ThreadFunction = void *(*)(void *);
using Sigaction = int (*)(int, const struct sigaction *, struct sigaction *);
using Signal = sighandler_t (*)(int, sighandler_t);
using Syscall = long (*)(long, long, long, long, long, long, long);
using SwapContext = int (*)(ucontext_t *, const ucontext_t *);
using PthreadCreate = int (*)(pthread_t *, const pthread_attr_t *, ThreadFunction, void *);
using Prctl = int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long);
using Fork = pid_t (*)();

/* Each function returns the function of the C library that an interceptor replaces; null if the C library has no such
 * function (_Fork before glibc 2.34). The functions are looked up when this library is loaded, so that later calls are
 * async-signal-safe. If another constructor runs earlier, its call looks them up. */
QUIPU_BARE Sigaction sigaction_behind();
QUIPU_BARE Signal signal_behind();
QUIPU_BARE Syscall syscall_behind();
QUIPU_BARE SwapContext swapcontext_behind();
QUIPU_BARE PthreadCreate pthread_create_behind();
QUIPU_BARE Prctl prctl_behind();
QUIPU_BARE Fork fork_behind();

} // namespace quipu

#endif
