/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of code objects. */
#include "python_api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 17, KEPT = SLOTS / 2 };

/* Found without a lock, for interpreters that have no lock of their own; a slot is filled once. */
struct slot {
    _Atomic(PyObject *) code;
    struct quipu_region *region;
};

static struct slot slots[SLOTS];
static unsigned kept;
static pthread_mutex_t filling = PTHREAD_MUTEX_INITIALIZER;

static void unlock(pthread_mutex_t **mutex) { pthread_mutex_unlock(*mutex); }

/* Holds a mutex to the end of the block. */
#define LOCKED(mutex)                                                                                                  \
    __attribute__((cleanup(unlock))) pthread_mutex_t *locked = mutex;                                                  \
    pthread_mutex_lock(locked)

/* A copy of a text attribute; NULL if there is none. */
static char *text_of(PyObject *object, const char *attribute) {
    PyObject *value = object != NULL ? python.PyObject_GetAttrString(object, attribute) : NULL;
    const char *text = value != NULL ? python.PyUnicode_AsUTF8(value) : NULL;
    char *copy = text != NULL ? strdup(text) : NULL;
    if (value != NULL)
        python.Py_DecRef(value);
    return copy;
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

static struct quipu_region *describe(PyObject *code, PyObject *frame) {
    char *file = text_of(code, "co_filename"), *module = NULL, *function = NULL, *name = NULL;
    struct quipu_region *region = NULL;
    if (file != NULL && strncmp(file, "<frozen ", 8) != 0) { /* importlib works for the importing module */
        module = module_of(frame);
        function = text_of(code, "co_qualname");
        if (function == NULL) /* Python 3.10 and older */
            function = text_of(code, "co_name");
        const size_t length = 3 + (module != NULL ? strlen(module) : 0) + (function != NULL ? strlen(function) : 0);
        name = malloc(length);
        region = calloc(1, sizeof *region);
    }
    if (region != NULL && name != NULL && function != NULL) {
        sprintf(name, "%s.%s", module != NULL ? module : "?", function);
        PyObject *line = python.PyObject_GetAttrString(code, "co_firstlineno");
        region->name = name;
        region->file = file;
        region->line = line != NULL ? (uint32_t)python.PyLong_AsLong(line) : 0;
        region->kind = QUIPU_PYTHON;
        if (line != NULL)
            python.Py_DecRef(line);
    } else {
        free(region);
        free(name);
        free(file);
        region = NULL;
    }
    free(module);
    free(function);
    return region;
}

static struct quipu_region *fill(size_t at, PyObject *code, PyObject *frame) {
    /* A return event may come while an exception is on its way. */
    PyObject *type, *value, *trace;
    python.PyErr_Fetch(&type, &value, &trace);
    struct quipu_region *region = describe(code, frame);
    python.PyErr_Clear();
    python.PyErr_Restore(type, value, trace);
    LOCKED(&filling);
    for (;; at = (at + 1) % SLOTS) {
        PyObject *there = atomic_load_explicit(&slots[at].code, memory_order_acquire);
        if (there == code || (there == NULL && kept >= KEPT)) {
            /* Another thread was faster, or there is no room; a region that nobody has entered is not in use. */
            if (region != NULL) {
                free((char *)region->name);
                free((char *)region->file);
                free(region);
            }
            return there == code ? slots[at].region : NULL;
        }
        if (there == NULL) {
            python.Py_IncRef(code); /* its address must not become that of another one */
            slots[at].region = region;
            atomic_store_explicit(&slots[at].code, code, memory_order_release);
            kept++;
            return region;
        }
    }
}

struct quipu_region *quipu_python_region(PyObject *code, PyObject *frame) {
    size_t at = (size_t)((((uintptr_t)code >> 4) * UINT64_C(0x9E3779B97F4A7C15)) >> 47);
    for (;; at = (at + 1) % SLOTS) {
        PyObject *there = atomic_load_explicit(&slots[at].code, memory_order_acquire);
        if (__builtin_expect(there == code, 1))
            return slots[at].region;
        if (there == NULL)
            return fill(at, code, frame);
    }
}
