// SPDX-License-Identifier: Apache-2.0
/* Intercepts prctl and syscall, like threads.cpp, to detect programs that give up system calls or the time stamp
 * counter. Later uses by the runtime would end such a program. Direct system call instructions are not detected. */
#include "behind.h"
#include "clock.h"
#include "tree.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace {

using namespace quipu;

void note_clock_lost() {
    const Locked locked;
    set_attribute("clock_problem", "the program disabled the time stamp counter: its times end at this moment");
}

void forgo_clock() {
    quipu_flush();
    const Locked locked;
    clock_kind = QUIPU_CLOCK_NONE;
    for_each_thread([](quipu_thread *thread) { thread->clock = QUIPU_CLOCK_NONE; });
}

/* A program must set PR_SET_NO_NEW_PRIVS before it can load a filter of system calls, and libseccomp does so. The
 * runtime therefore expects a filter as soon as it is set. */
void before_control(unsigned long option, unsigned long argument) {
    if (!active)
        return;
    const bool strict = option == PR_SET_SECCOMP && argument == SECCOMP_MODE_STRICT;
    const bool without_counter = option == PR_SET_TSC && argument == PR_TSC_SIGSEGV;
    if (without_counter && clock_kind == QUIPU_CLOCK_TSC)
        note_clock_lost();
    if (strict || without_counter)
        forgo_clock(); /* strict mode also disables the time stamp counter */
    if (without_counter)
        forbid_counter();
    if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS)
        forgo_system_calls();
}

int control(Prctl real, int option, va_list list) {
    unsigned long arguments[4];
    for (unsigned long &argument : arguments)
        argument = va_arg(list, unsigned long);
    before_control(static_cast<unsigned long>(option), arguments[0]);
    return real(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

void before_system_call(long number, long first, long second) {
    if (number == SYS_prctl)
        before_control(static_cast<unsigned long>(first), static_cast<unsigned long>(second));
    else if (number == SYS_seccomp && first == SECCOMP_SET_MODE_STRICT)
        before_control(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    else if (number == SYS_seccomp && first == SECCOMP_SET_MODE_FILTER)
        before_control(PR_SET_SECCOMP, SECCOMP_MODE_FILTER);
}

} // namespace

extern "C" {

#ifdef QUIPU_STATIC
int __real_prctl(int, ...);

int __wrap_prctl(int option, ...) {
    va_list list;
    va_start(list, option);
    const int result = control(reinterpret_cast<Prctl>(__real_prctl), option, list);
    va_end(list);
    return result;
}

long __real_syscall(long, ...);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
    before_system_call(number, a, b);
    return __real_syscall(number, a, b, c, d, e, f);
}
#else
/* The name differs from syscall, which the C library declares as variadic. No system call has more arguments. */
QUIPU_BARE __attribute__((visibility("default"))) long quipu_syscall(long number, long a, long b, long c, long d,
                                                                     long e, long f) __asm__("syscall");

QUIPU_BARE long quipu_syscall(long number, long a, long b, long c, long d, long e, long f) {
    const Syscall real = syscall_behind();
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    if (number == SYS_seccomp || number == SYS_prctl)
        before_system_call(number, a, b);
    return real(number, a, b, c, d, e, f);
}

__attribute__((visibility("default"))) int prctl(int option, ...) noexcept {
    const Prctl real = prctl_behind();
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    va_list list;
    va_start(list, option);
    const int result = control(real, option, list);
    va_end(list);
    return result;
}
#endif
}
