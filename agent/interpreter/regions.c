/* SPDX-License-Identifier: Apache-2.0 */
/* The regions of Python functions, by code object. */
#define _GNU_SOURCE
#include "python_api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 17, KEPT = SLOTS / 2 };

/* Threads look up regions at the same moment if the interpreter has no global lock. A look-up locks nothing: a slot is
 * filled only once, and its code is stored last. */
struct slot {
    _Atomic(PyObject *) code;
    struct python_region *region;
};

static struct slot slots[SLOTS];
static unsigned kept;
static pthread_mutex_t filling = PTHREAD_MUTEX_INITIALIZER;

static void unlock(pthread_mutex_t **mutex) { pthread_mutex_unlock(*mutex); }

/* Locks a mutex until the end of the block. */
#define LOCKED(mutex)                                                                                                  \
    __attribute__((cleanup(unlock))) pthread_mutex_t *locked = mutex;                                                  \
    pthread_mutex_lock(locked)

static struct python_region imports = {.region = {.name = "(imports)", .kind = QUIPU_PYTHON}, .origin = OF_IMPORT};

/* The folder of the standard library, whose functions count for their callers; NULL: all functions have regions. */
static char *standard_library;

QUIPU_EXPORT void quipu_python_fold(const char *folder) { standard_library = strdup(folder); }

static enum origin origin_of(const char *file) {
    const size_t length = standard_library != NULL ? strlen(standard_library) : 0;
    if (length == 0)
        return OF_PROGRAM;
    if (*file == '<')
        return OF_TEXT;
    if (strstr(file, "/site-packages/") != NULL || strstr(file, "/dist-packages/") != NULL)
        return OF_PACKAGE;
    return strncmp(file, standard_library, length) == 0 && file[length] == '/' ? OF_LIBRARY : OF_PROGRAM;
}

static char *module_of(PyObject *frame) {
    if (frame == NULL)
        frame = python.PyEval_GetFrame();
    PyObject *globals = frame != NULL ? python.PyObject_GetAttrString(frame, "f_globals") : NULL;
    PyObject *name = globals != NULL ? python.PyMapping_GetItemString(globals, "__name__") : NULL;
    const char *text = name != NULL ? python.PyUnicode_AsUTF8(name) : NULL;
    char *copy = text != NULL ? strdup(text) : NULL;
    if (name != NULL)
        python.Py_DecRef(name);
    if (globals != NULL)
        python.Py_DecRef(globals);
    return copy;
}

static void release(struct python_region *region) {
    if (region == NULL || region == &imports)
        return;
    free((char *)region->region.name);
    free((char *)region->region.file);
    free(region);
}

/* Returns a new region `module.function`, which owns `file`; NULL if there is no memory. */
static struct python_region *described(PyObject *code, char *file, const char *module, const char *function) {
    struct python_region *region = calloc(1, sizeof *region);
    char *name = NULL;
    if (region == NULL || asprintf(&name, "%s.%s", module, function) < 0) {
        free(region);
        free(file);
        return NULL;
    }
    region->region = (struct quipu_region){.name = name,
                                           .file = file,
                                           .line = (uint32_t)quipu_python_number(code, "co_firstlineno"),
                                           .kind = QUIPU_PYTHON};
    region->origin = origin_of(file);
    return region;
}

/* Returns a new region for a code object, or `imports`; NULL if the code has no region. */
static struct python_region *describe(PyObject *code, PyObject *frame) {
    char *file = quipu_python_text(code, "co_filename"), *function = quipu_python_name(code), *module = NULL;
    struct python_region *region = NULL;
    if (file == NULL || function == NULL) {
        free(file);
    } else if (strncmp(file, "<frozen ", 8) == 0) { /* importlib: only the outermost function has a region, (imports) */
        if (standard_library != NULL && strcmp(function, "_find_and_load") == 0)
            region = &imports;
        free(file);
    } else {
        module = module_of(frame);
        const bool is_module = strcmp(function, "<module>") == 0;
        if (is_module)
            quipu_python_read_module(code);
        if (module != NULL && strcmp(module, "quipu.region") == 0) /* this module only marks the regions of programs */
            free(file);
        else
            region = described(code, file, module != NULL ? module : "?", function);
        if (region != NULL && region->origin != OF_TEXT && is_module && module != NULL &&
            strcmp(module, "__main__") == 0)
            region->origin = OF_PROGRAM;
    }
    free(module);
    free(function);
    return region;
}

/* Creates the region of a code object in the first free slot from `at` on. */
static struct python_region *fill(size_t at, PyObject *code, PyObject *frame) {
    /* The exception is kept, because a return event may occur while an exception propagates. */
    PyObject *type, *value, *trace;
    python.PyErr_Fetch(&type, &value, &trace);
    struct python_region *region = describe(code, frame);
    python.PyErr_Clear();
    python.PyErr_Restore(type, value, trace);
    LOCKED(&filling);
    for (;; at = (at + 1) % SLOTS) {
        PyObject *there = atomic_load_explicit(&slots[at].code, memory_order_acquire);
        if (there == code || (there == NULL && kept >= KEPT)) {
            /* Another thread has filled the slot, or the table is full. No thread has seen the new region. */
            release(region);
            return there == code ? slots[at].region : NULL;
        }
        if (there == NULL) {
            python.Py_IncRef(code); /* never freed, so that no other code object gets this address */
            slots[at].region = region;
            atomic_store_explicit(&slots[at].code, code, memory_order_release);
            kept++;
            return region;
        }
    }
}

struct python_region *quipu_python_region(PyObject *code, PyObject *frame) {
    size_t at = (size_t)((((uintptr_t)code >> 4) * UINT64_C(0x9E3779B97F4A7C15)) >> 47);
    for (;; at = (at + 1) % SLOTS) {
        PyObject *there = atomic_load_explicit(&slots[at].code, memory_order_acquire);
        if (__builtin_expect(there == code, 1))
            return slots[at].region;
        if (there == NULL)
            return fill(at, code, frame);
    }
}
