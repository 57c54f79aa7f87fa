/* SPDX-License-Identifier: Apache-2.0 */
/* User regions of Score-P: defines the functions that the macros of SCOREP_User.h call. */
#include "interface.h"

#include <pthread.h>

typedef void *region_handle;
typedef void (*with_place)(region_handle *, const char **, uint32_t *, const char *, uint32_t, const char *, uint32_t);
typedef void (*with_handle)(region_handle);
typedef void (*by_name)(const char *, uint32_t, const char *, uint32_t);
typedef void (*end_by_name)(const char *);

/* The name of the region of each handle. If Score-P itself is not loaded, the handle is the address of the name. */
enum { MOST_HANDLES = 4096 };
static struct {
    region_handle handle;
    const char *name;
} handles[MOST_HANDLES];
static unsigned handle_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *name_of(region_handle handle) {
    const unsigned count = __atomic_load_n(&handle_count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < count; i++)
        if (handles[i].handle == handle)
            return handles[i].name;
    return NULL;
}

/* Stores the name of a handle. Creates the handle if Score-P has not created it. */
static void remember(region_handle *handle, const char *name) {
    const char *kept = quipu_region_name(name);
    if (handle == NULL || kept == NULL)
        return;
    pthread_mutex_lock(&lock);
    if (*handle == NULL)
        *handle = (region_handle)kept;
    if (name_of(*handle) == NULL && handle_count < MOST_HANDLES) {
        handles[handle_count].handle = *handle;
        handles[handle_count].name = kept;
        __atomic_store_n(&handle_count, handle_count + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

static void begin(region_handle handle) {
    const char *name = name_of(handle);
    if (name != NULL)
        quipu_region_begin(name);
}

static void end(region_handle handle) {
    const char *name = name_of(handle);
    if (name != NULL)
        quipu_region_end(name);
}

QUIPU_PUBLIC void SCOREP_User_RegionInit(region_handle *, const char **, uint32_t *, const char *, uint32_t,
                                         const char *, uint32_t);
void SCOREP_User_RegionInit(region_handle *handle, const char **last_name, uint32_t *last_file, const char *name,
                            uint32_t type, const char *file, uint32_t line) {
    with_place next = QUIPU_NEXT(with_place, "SCOREP_User_RegionInit");
    if (next != NULL)
        next(handle, last_name, last_file, name, type, file, line);
    remember(handle, name);
}

QUIPU_PUBLIC void SCOREP_User_RegionBegin(region_handle *, const char **, uint32_t *, const char *, uint32_t,
                                          const char *, uint32_t);
void SCOREP_User_RegionBegin(region_handle *handle, const char **last_name, uint32_t *last_file, const char *name,
                             uint32_t type, const char *file, uint32_t line) {
    with_place next = QUIPU_NEXT(with_place, "SCOREP_User_RegionBegin");
    if (next != NULL)
        next(handle, last_name, last_file, name, type, file, line);
    remember(handle, name);
    if (handle != NULL)
        begin(*handle);
}

QUIPU_PUBLIC void SCOREP_User_RegionEnter(region_handle);
void SCOREP_User_RegionEnter(region_handle handle) {
    with_handle next = QUIPU_NEXT(with_handle, "SCOREP_User_RegionEnter");
    if (next != NULL)
        next(handle);
    begin(handle);
}

QUIPU_PUBLIC void SCOREP_User_RegionEnd(region_handle);
void SCOREP_User_RegionEnd(region_handle handle) {
    end(handle);
    with_handle next = QUIPU_NEXT(with_handle, "SCOREP_User_RegionEnd");
    if (next != NULL)
        next(handle);
}

QUIPU_PUBLIC void SCOREP_User_RegionByNameBegin(const char *, uint32_t, const char *, uint32_t);
void SCOREP_User_RegionByNameBegin(const char *name, uint32_t type, const char *file, uint32_t line) {
    by_name next = QUIPU_NEXT(by_name, "SCOREP_User_RegionByNameBegin");
    if (next != NULL)
        next(name, type, file, line);
    quipu_region_begin(name);
}

QUIPU_PUBLIC void SCOREP_User_RegionByNameEnd(const char *);
void SCOREP_User_RegionByNameEnd(const char *name) {
    quipu_region_end(name);
    end_by_name next = QUIPU_NEXT(end_by_name, "SCOREP_User_RegionByNameEnd");
    if (next != NULL)
        next(name);
}
