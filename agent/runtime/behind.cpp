// SPDX-License-Identifier: Apache-2.0
#include "behind.h"

#include <dlfcn.h>
#include <stddef.h>

#ifndef QUIPU_STATIC
namespace quipu {
namespace {

enum Which : unsigned { SIGACTION, SIGNAL, PTHREAD_CREATE, PRCTL, SYSCALL, SWAPCONTEXT, FORK, COUNT };
constexpr const char *names[COUNT] = {"sigaction", "signal",      "pthread_create", "prctl",
                                      "syscall",   "swapcontext", "_Fork"};

struct Entry {
    void *function;
    bool looked_up;
} known[COUNT];

QUIPU_BARE bool is_ours(const void *function) {
    Dl_info here, there;
    return dladdr(static_cast<const void *>(known), &here) != 0 && dladdr(function, &there) != 0 &&
           here.dli_fbase == there.dli_fbase;
}

QUIPU_BARE void *in_library(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, name) : nullptr;
    if (handle)
        dlclose(handle); /* only removes this reference; the library stays loaded */
    return found && !is_ours(found) ? found : nullptr;
}

/* Looks up the next definition of a function. If another program with this library loads the measured program (SMPI
 * does so for each rank), the C library comes before this library in the list of loaded libraries. Then there is no
 * next definition, and the function is looked up in the C library. */
QUIPU_BARE void *look_up(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found && (found = dlsym(RTLD_DEFAULT, name)) && is_ours(found))
        found = nullptr;
    if (!found)
        found = in_library("libc.so.6", name);
    return found ? found : in_library("libpthread.so.0", name); /* before glibc 2.34 */
}

QUIPU_BARE void *behind(Which which) {
    Entry &entry = known[which];
    if (!__atomic_load_n(&entry.looked_up, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&entry.function, look_up(names[which]), __ATOMIC_RELAXED);
        __atomic_store_n(&entry.looked_up, true, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&entry.function, __ATOMIC_RELAXED);
}

QUIPU_BARE __attribute__((constructor(150))) void look_all_up() {
    for (unsigned which = 0; which < COUNT; which++)
        (void)behind(static_cast<Which>(which));
}

} // namespace

Sigaction sigaction_behind() { return reinterpret_cast<Sigaction>(behind(SIGACTION)); }
Signal signal_behind() { return reinterpret_cast<Signal>(behind(SIGNAL)); }
Syscall syscall_behind() { return reinterpret_cast<Syscall>(behind(SYSCALL)); }
SwapContext swapcontext_behind() { return reinterpret_cast<SwapContext>(behind(SWAPCONTEXT)); }
PthreadCreate pthread_create_behind() { return reinterpret_cast<PthreadCreate>(behind(PTHREAD_CREATE)); }
Prctl prctl_behind() { return reinterpret_cast<Prctl>(behind(PRCTL)); }
Fork fork_behind() { return reinterpret_cast<Fork>(behind(FORK)); }

} // namespace quipu
#endif
