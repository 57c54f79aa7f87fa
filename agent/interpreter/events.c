/* SPDX-License-Identifier: Apache-2.0 */
/* Measures Python functions as regions, by callbacks of sys.monitoring (Python 3.12 and newer), otherwise by the
 * profile function of every thread (PyEval_SetProfile).
 *
 * A generator or coroutine enters its region each time it is resumed, and leaves it each time it yields. Regions are
 * therefore always nested. Functions that were active before measuring started have no entry in the stack, and their
 * returns are ignored.
 */
#define _GNU_SOURCE
#include "hot.h"
#include "interface.h"
#include "python_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

struct python_api python;

/* The part to which an active function belongs: the program, the standard library, or the import of a module. */
enum part { PROGRAM, LIBRARY, IMPORT };

/* An active function. running: its frame object; with sys.monitoring its code object. The end of a frame or code ends
 * the innermost entry with the same `running`. region: NULL if the function has no region and counts for its caller. */
struct active {
    PyObject *running;
    struct quipu_frame *region;
    enum part part;
};

struct stack {
    struct active *frames;
    size_t depth, room;
};

static _Thread_local struct stack stack;
static pthread_key_t end_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool found, found_monitoring;

static void find_functions(void) {
    found = pthread_key_create(&end_key, free) == 0;
#define QUIPU_FIND(result, name, parameters)                                                                           \
    *(void **)&python.name = dlsym(RTLD_DEFAULT, #name);                                                               \
    found = found && python.name != NULL;
    QUIPU_PYTHON_API(QUIPU_FIND)
    const bool required = found;
    QUIPU_PYTHON_MONITORING(QUIPU_FIND)
    found_monitoring = found;
    found = required;
#undef QUIPU_FIND
}

static bool grow(void) {
    const size_t room = stack.room == 0 ? 256 : 2 * stack.room;
    struct active *frames = realloc(stack.frames, room * sizeof *frames);
    if (frames == NULL)
        return false;
    stack.frames = frames;
    stack.room = room;
    pthread_setspecific(end_key, frames);
    return true;
}

/* Returns the part of a function. During an import, only functions of the program itself do not belong to the import.
 * Code without a file belongs to the library if the library calls it. */
static enum part part_of(enum part caller, enum origin origin) {
    if (origin == OF_IMPORT || (caller == IMPORT && origin != OF_PROGRAM))
        return IMPORT;
    return origin == OF_LIBRARY || (caller == LIBRARY && origin == OF_TEXT) ? LIBRARY : PROGRAM;
}

/* Enters a function. Functions of the library or of an import that the same part calls count for their caller. */
static void enter(PyObject *running, struct python_region *region) {
    if (region == NULL || (stack.depth == stack.room && !grow()))
        return;
    const enum part caller = stack.depth > 0 ? stack.frames[stack.depth - 1].part : PROGRAM;
    const enum part part = part_of(caller, region->origin);
    const bool belongs_to_caller = part != PROGRAM && part == caller;
    struct quipu_frame *frame = belongs_to_caller ? NULL : quipu_enter_inline(&region->region);
    stack.frames[stack.depth++] = (struct active){running, frame, part};
}

static void leave(PyObject *running) {
    size_t at = stack.depth;
    while (at > 0 && stack.frames[at - 1].running != running)
        at--;
    if (at == 0) /* the function was active before measuring started, or belongs to the import machinery */
        return;
    size_t outermost =
        at - 1; /* this entry, or the first one inside of it with a region; its end ends all inner ones */
    while (outermost < stack.depth && stack.frames[outermost].region == NULL)
        outermost++;
    if (outermost < stack.depth)
        quipu_exit_inline(stack.frames[outermost].region, 0);
    stack.depth = at - 1;
}

static int on_event(PyObject *self, PyObject *frame, int event, PyObject *argument) {
    (void)self, (void)argument;
    if (event == TRACE_CALL) {
        PyObject *code = python.PyFrame_GetCode(frame);
        enter(frame, quipu_python_region(code, frame));
        python.Py_DecRef(code);
    } else if (event == TRACE_RETURN) {
        leave(frame);
    }
    return 0;
}

/* Stores the qualified name of a code object that does not contain it (Python 3.10 and older). */
QUIPU_EXPORT void quipu_python_name_code(PyObject *code, const char *name) {
    pthread_once(&once, find_functions);
    if (found)
        quipu_python_keep_name(code, name);
}

/* Starts to measure the Python functions of the calling thread. The caller holds the global interpreter lock. Returns
 * 1, or 0 if the process is not measured or this Python lacks a needed function. */
QUIPU_EXPORT int quipu_python_start(void) {
    if (!quipu_active())
        return 0;
    pthread_once(&once, find_functions);
    if (found)
        python.PyEval_SetProfile(on_event, NULL);
    return found;
}

static PyObject *none, *disable;

static PyObject *result_of(PyObject *object) {
    python.Py_IncRef(object);
    return object;
}

/* The callbacks of sys.monitoring: the first argument is the code object. Returning sys.monitoring.DISABLE switches the
 * event off for this code. */
static PyObject *on_enter(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self, (void)count;
    struct python_region *region = quipu_python_region(arguments[0], NULL);
    enter(arguments[0], region);
    return result_of(region != NULL ? none : disable);
}

/* Like on_enter, for PY_THROW, which cannot be switched off for one code object. */
static PyObject *on_throw(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self, (void)count;
    enter(arguments[0], quipu_python_region(arguments[0], NULL));
    return result_of(none);
}

static PyObject *on_leave(PyObject *self, PyObject *const *arguments, ptrdiff_t count) {
    (void)self, (void)count;
    leave(arguments[0]);
    return result_of(none);
}

/* Returns a callback for sys.monitoring; NULL if this interpreter has no sys.monitoring. which: 0 for the start and the
 * resumption of a function, 1 for an exception that is thrown into a generator, 2 for every kind of end. is_none,
 * is_disable: None and sys.monitoring.DISABLE. */
QUIPU_EXPORT PyObject *quipu_python_callback(int which, PyObject *is_none, PyObject *is_disable) {
    static struct method methods[] = {{"quipu_enter", (void *)on_enter, METHOD_FAST_CALL, NULL},
                                      {"quipu_throw", (void *)on_throw, METHOD_FAST_CALL, NULL},
                                      {"quipu_leave", (void *)on_leave, METHOD_FAST_CALL, NULL}};
    pthread_once(&once, find_functions);
    if (!found_monitoring)
        return NULL;
    none = result_of(is_none);
    disable = result_of(is_disable);
    return python.PyCFunction_NewEx(&methods[which], NULL, NULL);
}

__attribute__((constructor)) static void check(void) {
    static struct quipu_module module = {.source = "the hook of Python"};
    quipu_check_library(&module);
}
