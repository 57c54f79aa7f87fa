/* SPDX-License-Identifier: Apache-2.0 */
/* The few functions of CPython's C interface that are used, found in the process at run time. */
#ifndef QUIPU_PYTHON_API_H
#define QUIPU_PYTHON_API_H

#include "quipu.h"

#include <stdbool.h>

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
    X(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))                                                      \
    X(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *))                                                       \
    X(void, PyErr_Clear, (void))                                                                                       \
    X(void, PyEval_SetProfile, (trace_function, PyObject *))

/* Of Python 3.12 and newer, for sys.monitoring. */
#define QUIPU_PYTHON_MONITORING(X)                                                                                     \
    X(PyObject *, PyCFunction_NewEx, (struct method *, PyObject *, PyObject *))                                        \
    X(PyObject *, PyEval_GetFrame, (void))

/* PyMethodDef, part of the stable interface. */
struct method {
    const char *name;
    void *function;
    int flags;
    const char *documentation;
};
enum { METHOD_FAST_CALL = 0x80 };

struct python_api {
/* A declarator cannot stand in parentheses of its own. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define QUIPU_MEMBER(result, name, parameters) result(*name) parameters;
    QUIPU_PYTHON_API(QUIPU_MEMBER)
    QUIPU_PYTHON_MONITORING(QUIPU_MEMBER)
#undef QUIPU_MEMBER
};

extern struct python_api python;

/* The region of a code object, made at first use of a frame that runs it (NULL: the current one); NULL if it has none:
 * the import machinery, and code beyond the number that is kept. */
struct quipu_region *quipu_python_region(PyObject *code, PyObject *frame);

#endif
