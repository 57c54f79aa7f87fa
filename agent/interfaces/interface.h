/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h: what the interfaces of other tools have in common. */
#ifndef QUIPU_INTERFACES_H
#define QUIPU_INTERFACES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "quipu_runtime.h"
#define QUIPU_REGION_RUNTIME
#include "quipu/region.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#define QUIPU_PUBLIC __attribute__((visibility("default")))

/* Regions that an interface has opened on this thread, for functions that end one without its name. */
enum quipu_opener { QUIPU_CALIPER, QUIPU_KOKKOS, QUIPU_KOKKOS_COPY, QUIPU_KOKKOS_SECTION, QUIPU_NVTX, QUIPU_OPENERS };

/* Begins a region. key: what it is ended by. */
void quipu_open(enum quipu_opener opener, const void *key, const char *name);
void quipu_open_phase(enum quipu_opener opener, const void *key, const char *name, long long iteration);
/* Ends the innermost region with this key; false if none is open. */
bool quipu_close(enum quipu_opener opener, const void *key);
/* How many are open. */
unsigned quipu_open_count(enum quipu_opener opener);

/* The function of this name in the libraries after this one, found once: the tool's own. NULL: it is not there. */
#define QUIPU_NEXT(type, name)                                                                                         \
    __extension__({                                                                                                    \
        static void *found;                                                                                            \
        static bool looked;                                                                                            \
        if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {                                                             \
            found = dlsym(RTLD_NEXT, name);                                                                            \
            __atomic_store_n(&looked, true, __ATOMIC_RELEASE);                                                         \
        }                                                                                                              \
        (type) found;                                                                                                  \
    })

#endif
