/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of open regions of each thread (interface.h). */
#include "interface.h"

#include <pthread.h>
#include <sys/mman.h>

enum { AT_ONCE = 256 }; /* the largest number of open regions in a list */

struct list {
    unsigned count;
    struct {
        const void *key;
        const char *name; /* the copy that quipu_region_name returned */
        bool is_phase;
    } open[AT_ONCE];
};

/* The open regions of this thread, one list per interface; NULL until the first one. The lists are allocated, because
 * they are too large for static thread-local storage. */
static __thread struct list *lists;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void forget(void *ended) {
    lists = NULL;
    munmap(ended, sizeof(struct list) * QUIPU_OPENERS);
}

static void make_key(void) { has_key = pthread_key_create(&key, forget) == 0; }

static struct list *list_of(enum quipu_opener opener) {
    if (lists == NULL && quipu_active()) {
        pthread_once(&once, make_key);
        void *room = mmap(NULL, sizeof(struct list) * QUIPU_OPENERS, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED)
            return NULL;
        lists = room;
        if (has_key)
            pthread_setspecific(key, room);
    }
    return lists != NULL ? &lists[opener] : NULL;
}

/* Appends a region to its list. Returns false if nothing is measured or the list is full. */
static bool remember(enum quipu_opener opener, const void *by, const char *name, bool is_phase) {
    struct list *list = list_of(opener);
    const char *kept = list != NULL ? quipu_region_name(name) : NULL;
    if (kept == NULL || list->count == AT_ONCE)
        return false;
    list->open[list->count].key = by;
    list->open[list->count].name = kept;
    list->open[list->count++].is_phase = is_phase;
    return true;
}

void quipu_open(enum quipu_opener opener, const void *by, const char *name) {
    if (remember(opener, by, name, false))
        quipu_region_begin(name);
}

void quipu_open_phase(enum quipu_opener opener, const void *by, const char *name, long long iteration) {
    if (remember(opener, by, name, true))
        quipu_phase_begin(name, iteration);
}

bool quipu_close(enum quipu_opener opener, const void *by) {
    struct list *list = list_of(opener);
    for (unsigned i = list != NULL ? list->count : 0; i-- > 0;) {
        if (list->open[i].key != by)
            continue;
        const char *name = list->open[i].name;
        const bool is_phase = list->open[i].is_phase;
        for (unsigned after = i + 1; after < list->count; after++)
            list->open[after - 1] = list->open[after];
        list->count--;
        if (is_phase)
            quipu_phase_end(name);
        else
            quipu_region_end(name);
        return true;
    }
    return false;
}

unsigned quipu_open_count(enum quipu_opener opener) {
    const struct list *list = list_of(opener);
    return list != NULL ? list->count : 0;
}
