/* SPDX-License-Identifier: Apache-2.0 */
/* The few functions of CPython's C interface that are used, found in the process at run time. */
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

/* Where code comes from. OF_TEXT: from no file, such as the methods of data classes. */
enum origin { OF_PROGRAM, OF_PACKAGE, OF_LIBRARY, OF_TEXT, OF_IMPORT };

struct python_region {
    struct quipu_region region;
    enum origin origin;
};

/* The region of a code object, made at first use of a frame that runs it (NULL: the current one); NULL if it has none:
 * parts of the import machinery, and code beyond the number that is kept. */
struct python_region *quipu_python_region(PyObject *code, PyObject *frame);

/* Finds the names of all functions that the code of a module defines. */
void quipu_python_read_module(PyObject *code);
/* Keeps the name of a code object. */
void quipu_python_keep_name(PyObject *code, const char *name);
/* The name of a code object within its module; the caller frees it. */
char *quipu_python_name(PyObject *code);

/* A copy of a text attribute; NULL if there is none. No exception is left. */
char *quipu_python_text(PyObject *object, const char *attribute);
/* A whole number that is an attribute; 0 if there is none. No exception is left. */
long quipu_python_number(PyObject *object, const char *attribute);

#endif
