/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the call paths of Python functions visible to valgrind, which only sees the C functions of the interpreter.
 *
 * PEP 523 lets a library replace the function that executes a Python frame. This library executes the frames of each
 * Python call path through a separate C function: quipu_python_path_0 and so on. These functions only call the original
 * function of the interpreter, but callgrind counts for each of them separately.
 *
 * A file describes each call path in one line. The fields, separated by tabs: number of the call path (hexadecimal, as
 * in the name of its function), number of its caller (-1: none), first line, qualified name and file of the code.
 */
#define _GNU_SOURCE
#include "python_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef PyObject *(*evaluation)(void *thread, void *frame, int throws);

struct python_api python;

static evaluation evaluate;
static PyObject *(*code_of_frame)(void *frame);

/* Defines 4 · 16³ functions whose names end with hexadecimal numbers. A macro cannot expand itself, so each digit has a
 * separate macro. */
/* clang-format off */
#define QUIPU_DIGIT_1(X, n) \
    X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) \
    X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define QUIPU_DIGIT_2(X, n) \
    X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) \
    X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define QUIPU_DIGIT_3(X, n) \
    X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) \
    X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)

/* n is part of a name, so parentheses are impossible. NOLINTBEGIN(bugprone-macro-parentheses) */
#define QUIPU_FUNCTION(n) \
    QUIPU_EXPORT PyObject *quipu_python_path_##n(void *thread, void *frame, int throws) { \
        return evaluate(thread, frame, throws); \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
#define QUIPU_FUNCTIONS_16(n) QUIPU_DIGIT_1(QUIPU_FUNCTION, n)
#define QUIPU_FUNCTIONS_256(n) QUIPU_DIGIT_2(QUIPU_FUNCTIONS_16, n)
#define QUIPU_FUNCTIONS_4096(n) QUIPU_DIGIT_3(QUIPU_FUNCTIONS_256, n)

QUIPU_FUNCTIONS_4096(0)
QUIPU_FUNCTIONS_4096(1)
QUIPU_FUNCTIONS_4096(2)
QUIPU_FUNCTIONS_4096(3)

#define QUIPU_NAME(n) quipu_python_path_##n,
#define QUIPU_NAMES_16(n) QUIPU_DIGIT_1(QUIPU_NAME, n)
#define QUIPU_NAMES_256(n) QUIPU_DIGIT_2(QUIPU_NAMES_16, n)
#define QUIPU_NAMES_4096(n) QUIPU_DIGIT_3(QUIPU_NAMES_256, n)

static const evaluation through[] = {
    QUIPU_NAMES_4096(0) QUIPU_NAMES_4096(1) QUIPU_NAMES_4096(2) QUIPU_NAMES_4096(3)
};
/* clang-format on */

enum { PATHS = sizeof through / sizeof *through, SLOTS = 4 * PATHS, NONE = -1, NO_REGION = -2 };

/* A call path: a code object that the call path `parent` calls. number: NO_REGION if the code counts for its caller.
 * text: the line in the file; NULL without a number. */
struct path {
    PyObject *code;
    int parent, number;
    char *text;
};

static struct path paths[SLOTS]; /* hash table by parent and code */
static PyObject *codes[PATHS];   /* the code of each numbered call path */
static int numbered;
static unsigned filled;
static _Thread_local int here = NONE; /* the active call path of this thread */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *prefix;
static FILE *file;

static void open_file(void) {
    char name[4200];
    snprintf(name, sizeof name, "%s%ld", prefix, (long)getpid());
    file = fopen(name, "we");
    if (file != NULL)
        setlinebuf(file); /* the file stays complete if the process is killed */
}

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork(void) { pthread_mutex_unlock(&lock); }

/* After a fork, valgrind writes a separate file for the child process. It refers to call paths that have their numbers
 * from the parent process. The file of the child therefore repeats all lines of the parent. */
static void in_child(void) {
    open_file();
    for (size_t at = 0; at < SLOTS && file != NULL; at++)
        if (paths[at].text != NULL)
            fputs(paths[at].text, file);
    pthread_mutex_unlock(&lock);
}

/* Returns a copy of a text attribute, with '?' for tabs and line ends; empty if there is no such attribute. */
static char *text_of(PyObject *object, const char *attribute) {
    PyObject *value = python.PyObject_GetAttrString(object, attribute);
    const char *text = value != NULL ? python.PyUnicode_AsUTF8(value) : NULL;
    char *copy = strdup(text != NULL ? text : "");
    for (char *c = copy; c != NULL && *c; c++)
        if (*c == '\t' || *c == '\n')
            *c = '?';
    if (value != NULL)
        python.Py_DecRef(value);
    python.PyErr_Clear();
    return copy;
}

/* Gives a call path its number, and writes its line. Frozen code (importlib) gets no number and counts for its caller,
 * the importing module. */
static void describe(struct path *path) {
    PyObject *type, *value, *trace; /* kept: an exception may be pending, which the caller throws into the frame */
    python.PyErr_Fetch(&type, &value, &trace);
    char *source = text_of(path->code, "co_filename"), *name = text_of(path->code, "co_qualname");
    if (name != NULL && *name == '\0') { /* Python 3.10 and older */
        free(name);
        name = text_of(path->code, "co_name");
    }
    PyObject *first = python.PyObject_GetAttrString(path->code, "co_firstlineno");
    const long line = first != NULL ? python.PyLong_AsLong(first) : 0;
    if (first != NULL)
        python.Py_DecRef(first);
    if (source != NULL && name != NULL && strncmp(source, "<frozen ", 8) != 0 && numbered < PATHS &&
        asprintf(&path->text, "%x\t%d\t%ld\t%s\t%s\n", numbered, path->parent, line, name, source) >= 0) {
        codes[numbered] = path->code;
        path->number = numbered++;
        if (file != NULL)
            fputs(path->text, file);
    }
    free(source);
    free(name);
    python.PyErr_Clear();
    python.PyErr_Restore(type, value, trace);
}

/* Returns the number of the call path in which `parent` calls `code`; NO_REGION if the code counts for its caller. */
static int number_of(int parent, PyObject *code) {
    size_t at = (size_t)((((uintptr_t)code >> 4) ^ ((uintptr_t)parent << 32)) * UINT64_C(0x9E3779B97F4A7C15) >> 48);
    pthread_mutex_lock(&lock);
    for (at %= SLOTS; paths[at].code != NULL; at = (at + 1) % SLOTS)
        if (paths[at].code == code && paths[at].parent == parent)
            break;
    int number = paths[at].code != NULL ? paths[at].number : NO_REGION;
    if (paths[at].code == NULL && filled < SLOTS / 2) {
        filled++;
        python.Py_IncRef(code); /* never freed, so that no other code object gets this address */
        paths[at] = (struct path){code, parent, NO_REGION, NULL};
        describe(&paths[at]);
        number = paths[at].number;
    }
    pthread_mutex_unlock(&lock);
    return number;
}

/* Executes a frame, instead of the function of the interpreter. */
static PyObject *on_frame(void *thread, void *frame, int throws) {
    PyObject *code = code_of_frame(frame);
    const int outer = here;
    /* A function that calls itself directly remains in the same call path, as in profiles. */
    const int number = outer != NONE && codes[outer] == code ? NO_REGION : number_of(outer, code);
    if (number == NO_REGION)
        return evaluate(thread, frame, throws);
    here = number;
    PyObject *result = through[number](thread, frame, throws);
    here = outer;
    return result;
}

/* Up to Python 3.10 a frame is an object. The frame keeps a reference to its code, so the second one is not needed. */
static PyObject *code_of_object(void *frame) {
    PyObject *code = python.PyFrame_GetCode(frame);
    python.Py_DecRef(code);
    return code;
}

/* Python 3.11 has no function that returns the code of an internal frame. f_code is the fifth member of the frame,
 * after f_func, f_globals, f_builtins and f_locals (pycore_frame.h). */
static PyObject *code_of_3_11(void *frame) { return ((PyObject **)frame)[4]; }

static PyObject *(*code_of_newer)(void *frame); /* PyUnstable_InterpreterFrame_GetCode */

static PyObject *code_of_3_12(void *frame) {
    PyObject *code = code_of_newer(frame);
    python.Py_DecRef(code);
    return code;
}

/* Starts to execute each frame through the function of its call path. files: prefix of the files with the call paths;
 * the process id follows. minor: minor version of Python 3. The caller holds the global interpreter lock. Returns 1, or
 * 0 if this Python lacks a needed function, or if the file cannot be created. */
QUIPU_EXPORT int quipu_python_paths_start(const char *files, int minor) {
    bool found = true;
#define QUIPU_FIND(result, name, parameters)                                                                           \
    *(void **)&python.name = dlsym(RTLD_DEFAULT, #name);                                                               \
    found = found && python.name != NULL;
    QUIPU_PYTHON_API(QUIPU_FIND)
#undef QUIPU_FIND
    void *(*interpreter)(void);
    evaluation (*get)(void *);
    void (*set)(void *, evaluation);
    *(void **)&interpreter = dlsym(RTLD_DEFAULT, "PyInterpreterState_Get");
    *(void **)&get = dlsym(RTLD_DEFAULT, "_PyInterpreterState_GetEvalFrameFunc");
    *(void **)&set = dlsym(RTLD_DEFAULT, "_PyInterpreterState_SetEvalFrameFunc");
    *(void **)&code_of_newer = dlsym(RTLD_DEFAULT, "PyUnstable_InterpreterFrame_GetCode");
    code_of_frame = minor < 11 ? code_of_object : minor == 11 ? code_of_3_11 : code_of_3_12;
    if (!found || interpreter == NULL || get == NULL || set == NULL || (minor > 11 && code_of_newer == NULL))
        return 0;
    prefix = strdup(files);
    if (prefix == NULL || pthread_atfork(before_fork, after_fork, in_child) != 0)
        return 0;
    open_file();
    evaluate = get(interpreter());
    set(interpreter(), on_frame);
    return file != NULL;
}
