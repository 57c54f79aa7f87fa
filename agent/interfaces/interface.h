/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h: common parts of the annotation interfaces of other tools. */
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

/* Begins a region. key: the same key ends it. */
void quipu_open(enum quipu_opener opener, const void *key, const char *name);
void quipu_open_phase(enum quipu_opener opener, const void *key, const char *name, long long iteration);
/* Ends the innermost region with this key. Returns false if none is open. */
bool quipu_close(enum quipu_opener opener, const void *key);
/* Returns the number of open regions. */
unsigned quipu_open_count(enum quipu_opener opener);

/* Returns the function of the tool itself: the next definition of this name after this library; NULL if there is none.
 * */
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
