/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h: common parts of the files that define annotation functions of other tools. */
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

/* Each interface has a list of its open regions per thread. Functions that end a region without giving its name find
 * the name in this list. */
enum quipu_opener { QUIPU_CALIPER, QUIPU_KOKKOS, QUIPU_KOKKOS_COPY, QUIPU_KOKKOS_SECTION, QUIPU_NVTX, QUIPU_OPENERS };

/* Begins a region. key: identifies the region for quipu_close; may be NULL. If too many regions are open, does nothing.
 */
void quipu_open(enum quipu_opener opener, const void *key, const char *name);
/* Begins an iteration, such as a time step. iteration: its number. */
void quipu_open_phase(enum quipu_opener opener, const void *key, const char *name, long long iteration);
/* Ends the innermost open region with this key. Returns false if there is none. */
bool quipu_close(enum quipu_opener opener, const void *key);
/* Returns the number of regions that this interface has opened on this thread and not closed. */
unsigned quipu_open_count(enum quipu_opener opener);

/* Returns the function `name` of the other tool, as a pointer of this type; NULL if the tool is not loaded. This is the
 * next definition of the name in the search order after this library. */
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
