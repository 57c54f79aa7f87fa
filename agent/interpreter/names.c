/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Python functions, by code object.
 *
 * The constants of the code of a module contain the code objects of all functions that the module defines. Functions
 * with the same qualified name are numbered in the order of their lines: `f`, `f@2`. These names do not change if lines
 * move. Python 3.10 and older do not store qualified names in code objects, so this file builds the names. */
#define _GNU_SOURCE
#include "python_api.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 17, KEPT = SLOTS / 2, CO_OPTIMIZED = 1 };

struct named {
    PyObject *code;
    char *name;
};

/* Hash table by the address of the code object. It contains only names that the attribute co_qualname does not give. */
static struct named names[SLOTS];
static unsigned kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

char *quipu_python_text(PyObject *object, const char *attribute) {
    PyObject *value = object != NULL ? python.PyObject_GetAttrString(object, attribute) : NULL;
    const char *text = value != NULL ? python.PyUnicode_AsUTF8(value) : NULL;
    char *copy = text != NULL ? strdup(text) : NULL;
    if (value != NULL)
        python.Py_DecRef(value);
    python.PyErr_Clear();
    return copy;
}

long quipu_python_number(PyObject *object, const char *attribute) {
    PyObject *value = python.PyObject_GetAttrString(object, attribute);
    const long number = value != NULL ? python.PyLong_AsLong(value) : 0;
    if (value != NULL)
        python.Py_DecRef(value);
    python.PyErr_Clear();
    return number;
}

static struct named *slot_of(PyObject *code) {
    size_t at = (size_t)((((uintptr_t)code >> 4) * UINT64_C(0x9E3779B97F4A7C15)) >> 47);
    while (names[at].code != NULL && names[at].code != code)
        at = (at + 1) % SLOTS;
    return &names[at];
}

/* Stores the name of a code object; frees the name if the code already has one or the table is full. */
static void keep(PyObject *code, char *name) {
    pthread_mutex_lock(&lock);
    struct named *slot = slot_of(code);
    if (name != NULL && slot->code == NULL && kept < KEPT) {
        python.Py_IncRef(code); /* never freed, so that no other code object gets this address */
        *slot = (struct named){code, name};
        kept++;
        name = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(name);
}

void quipu_python_keep_name(PyObject *code, const char *name) { keep(code, strdup(name)); }

char *quipu_python_name(PyObject *code) {
    pthread_mutex_lock(&lock);
    const struct named *slot = slot_of(code);
    char *name = slot->code != NULL ? strdup(slot->name) : NULL;
    pthread_mutex_unlock(&lock);
    if (name == NULL)
        name = quipu_python_text(code, "co_qualname");
    return name != NULL ? name : quipu_python_text(code, "co_name");
}

/* A function or class that a module defines. order: its position in the search of the module. */
struct definition {
    PyObject *code;
    char *name;
    long line;
    size_t order;
};

struct definitions {
    struct definition *items;
    size_t count, room;
};

static bool add(struct definitions *all, PyObject *code, char *name) {
    if (all->count == all->room) {
        const size_t room = all->room == 0 ? 64 : 2 * all->room;
        struct definition *items = realloc(all->items, room * sizeof *items);
        if (items == NULL)
            return false;
        all->items = items;
        all->room = room;
    }
    python.Py_IncRef(code);
    all->items[all->count] = (struct definition){code, name, quipu_python_number(code, "co_firstlineno"), all->count};
    all->count++;
    return true;
}

/* Returns the qualified name of a code object, built as Python does. within: qualified name of the enclosing function
 * or class; NULL if the module encloses the code. The caller frees it. */
static char *built_name(PyObject *code, const char *within, bool in_function) {
    char *own = quipu_python_text(code, "co_name"), *name = NULL;
    if (own == NULL || within == NULL)
        return own;
    if (asprintf(&name, "%s.%s%s", within, in_function ? "<locals>." : "", own) < 0)
        name = NULL;
    free(own);
    return name;
}

/* Adds the code objects in the constants of `code`, and recursively in theirs. type: the type of code objects. within:
 * qualified name of `code`; NULL for a module. */
static void collect(struct definitions *all, PyObject *code, PyObject *type, const char *within, int depth) {
    PyObject *constants = depth < 64 ? python.PyObject_GetAttrString(code, "co_consts") : NULL;
    const ptrdiff_t size = constants != NULL ? python.PySequence_Size(constants) : 0;
    const bool in_function = within != NULL && (quipu_python_number(code, "co_flags") & CO_OPTIMIZED) != 0;
    for (ptrdiff_t i = 0; i < size; i++) {
        PyObject *item = python.PySequence_GetItem(constants, i);
        PyObject *of = item != NULL ? python.PyObject_Type(item) : NULL;
        if (of == type) {
            char *name = quipu_python_text(item, "co_qualname");
            if (name == NULL)
                name = built_name(item, within, in_function);
            if (name != NULL && add(all, item, name))
                collect(all, item, type, name, depth + 1);
            else
                free(name);
        }
        if (of != NULL)
            python.Py_DecRef(of);
        if (item != NULL)
            python.Py_DecRef(item);
    }
    if (constants != NULL)
        python.Py_DecRef(constants);
    python.PyErr_Clear();
}

static int compare(const void *left, const void *right) {
    const struct definition *a = left, *b = right;
    const int names_differ = strcmp(a->name, b->name);
    if (names_differ != 0)
        return names_differ;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

void quipu_python_read_module(PyObject *code) {
    struct definitions all = {NULL, 0, 0};
    PyObject *type = python.PyObject_Type(code);
    collect(&all, code, type, NULL, 0);
    python.Py_DecRef(type);
    if (all.count > 0)
        qsort(all.items, all.count, sizeof *all.items, compare);
    unsigned number = 1;
    for (size_t i = 0; i < all.count; i++) {
        const struct definition *item = &all.items[i];
        number = i > 0 && strcmp(item->name, all.items[i - 1].name) == 0 ? number + 1 : 1;
        char *name = NULL;
        if (number > 1 && asprintf(&name, "%s@%u", item->name, number) < 0)
            name = NULL;
        char *known = number == 1 ? quipu_python_text(item->code, "co_qualname") : NULL;
        if (name != NULL)
            keep(item->code, name);
        else if (known == NULL)
            keep(item->code, strdup(item->name));
        free(known);
    }
    for (size_t i = 0; i < all.count; i++) {
        python.Py_DecRef(all.items[i].code);
        free(all.items[i].name);
    }
    free(all.items);
}
