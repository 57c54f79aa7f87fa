/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of CPython's C interface that Quipu uses. Quipu looks them up in the process at run time. */
#ifndef QUIPU_PYTHON_API_H
#define QUIPU_PYTHON_API_H

#include "quipu.h"

#include <stdbool.h>
#include <stddef.h>

#define QUIPU_EXPORT __attribute__((visibility("default")))

typedef struct _object PyObject;
typedef int (*trace_function)(PyObject *self, PyObject *frame, int event, PyObject *argument);

/* Events of PyEval_SetProfile; the numbers are part of CPython's documented interface. */
enum { TRACE_CALL = 0, TRACE_RETURN = 3 };

#define QUIPU_PYTHON_API(X)                                                                                            \
    X(void, Py_IncRef, (PyObject *))                                                                                   \
    X(void, Py_DecRef, (PyObject *))                                                                                   \
    X(PyObject *, PyFrame_GetCode, (PyObject *))                                                                       \
    X(PyObject *, PyObject_GetAttrString, (PyObject *, const char *))                                                  \
    X(PyObject *, PyMapping_GetItemString, (PyObject *, const char *))                                                 \
    X(const char *, PyUnicode_AsUTF8, (PyObject *))                                                                    \
    X(long, PyLong_AsLong, (PyObject *))                                                                               \
    X(PyObject *, PyObject_Type, (PyObject *))                                                                         \
    X(ptrdiff_t, PySequence_Size, (PyObject *))                                                                        \
    X(PyObject *, PySequence_GetItem, (PyObject *, ptrdiff_t))                                                         \
    X(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))                                                      \
    X(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *))                                                       \
    X(void, PyErr_Clear, (void))                                                                                       \
    X(void, PyEval_SetProfile, (trace_function, PyObject *))

/* Functions of Python 3.12 and newer, for sys.monitoring. */
#define QUIPU_PYTHON_MONITORING(X)                                                                                     \
    X(PyObject *, PyCFunction_NewEx, (struct method *, PyObject *, PyObject *))                                        \
    X(PyObject *, PyEval_GetFrame, (void))

/* PyMethodDef of the stable ABI of CPython. */
struct method {
    const char *name;
    void *function;
    int flags;
    const char *documentation;
};
enum { METHOD_FAST_CALL = 0x80 };

struct python_api {
/* A declaration allows no parentheses around `result`. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define QUIPU_MEMBER(result, name, parameters) result(*name) parameters;
    QUIPU_PYTHON_API(QUIPU_MEMBER)
    QUIPU_PYTHON_MONITORING(QUIPU_MEMBER)
#undef QUIPU_MEMBER
};

extern struct python_api python;

/* The origin of code. OF_PACKAGE: an installed package (site-packages). OF_LIBRARY: the standard library. OF_TEXT: no
 * file, such as the generated methods of data classes. OF_IMPORT: the import machinery. */
enum origin { OF_PROGRAM, OF_PACKAGE, OF_LIBRARY, OF_TEXT, OF_IMPORT };

struct python_region {
    struct quipu_region region;
    enum origin origin;
};

/* Returns the region of a code object, created at first use. Returns NULL if the code has no region: most functions of
 * the import machinery, quipu.region, or any code after the table of regions is full. frame: a frame that executes the
 * code; NULL: the current frame. */
struct python_region *quipu_python_region(PyObject *code, PyObject *frame);

/* Stores the names of all functions in the code of a module (names.c). */
void quipu_python_read_module(PyObject *code);
/* Stores a copy of the name of a code object. */
void quipu_python_keep_name(PyObject *code, const char *name);
/* Returns the name of a code object within its module; NULL if it has none. The caller frees it. */
char *quipu_python_name(PyObject *code);

/* Returns a copy of a text attribute; NULL if there is no such attribute. The caller frees it. Clears the exception of
 * Python. */
char *quipu_python_text(PyObject *object, const char *attribute);
/* Returns the value of an integer attribute; 0 if there is no such attribute. Clears the exception of Python. */
long quipu_python_number(PyObject *object, const char *attribute);

#endif
