/* Programs that give up system calls, after which one of ours would end them: prctl on its way to the C library, as in
 * threads.cpp. */
#include "behind.h"
#include "tree.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

namespace {

using namespace quipu;

void forgo_clock() {
    quipu_flush();
    const Locked locked;
    clock_kind = QUIPU_CLOCK_NONE;
    for_each_thread([](quipu_thread *thread) { thread->clock = QUIPU_CLOCK_NONE; });
}

/* A program that forbids itself new privileges is about to load a filter of system calls, which may come in other ways
 * than by prctl: without this it may not, and libseccomp does it first. */
int control(Prctl real, int option, va_list list) {
    unsigned long arguments[4];
    for (unsigned long &argument : arguments)
        argument = va_arg(list, unsigned long);
    if (active && (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS)) {
        if (option == PR_SET_SECCOMP && arguments[0] == SECCOMP_MODE_STRICT)
            forgo_clock(); /* the kernel takes the time stamp counter away, too */
        forgo_system_calls();
    }
    return real(option, arguments[0], arguments[1], arguments[2], arguments[3]);
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
#else
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
