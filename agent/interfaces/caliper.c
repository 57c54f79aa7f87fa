/* SPDX-License-Identifier: Apache-2.0 */
/* Caliper: its functions for C and Fortran (cali.h), and the constructors and destructors of the C++ classes that mark
 * a scope (Annotation.h). The latter are defined by their mangled names.
 */
#include "interface.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t attribute;
#define NO_ATTRIBUTE (~(attribute)0)

/* Names of the attributes if Caliper itself is not loaded. An attribute is then the index of its name in this table. */
enum { MOST_ATTRIBUTES = 1024 };
static const char *attributes[MOST_ATTRIBUTES];
static unsigned attribute_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Returns the attribute with this name, created if necessary; NO_ATTRIBUTE if the table is full. */
static attribute new_attribute(const char *name) {
    attribute found = NO_ATTRIBUTE;
    const char *kept = quipu_region_name(name);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; kept != NULL && i < attribute_count && found == NO_ATTRIBUTE; i++)
        if (attributes[i] == kept)
            found = i;
    if (kept != NULL && found == NO_ATTRIBUTE && attribute_count < MOST_ATTRIBUTES) {
        attributes[attribute_count] = kept;
        found = attribute_count++;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static const char *name_of(attribute number) {
    typedef const char *(*function)(attribute);
    function next = QUIPU_NEXT(function, "cali_attribute_name");
    const char *name = next != NULL ? next(number) : number < attribute_count ? attributes[number] : NULL;
    return name != NULL ? name : "";
}

/* Returns whether the values of this attribute are names of regions. The values of other attributes are data. */
static bool names_regions(const char *name) {
    static const char *const known[] = {"region", "function",    "loop",     "annotation",
                                        "phase",  "comm.region", "statement"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    return false;
}

/* Begins a region for an attribute with a text value: "value" if the attribute names regions, otherwise "name=value".
 * Without a value (NULL), the region has the name of the attribute. */
static void open_value(const char *name, const char *value) {
    const void *key = quipu_region_name(name);
    if (names_regions(name) || value == NULL) {
        quipu_open(QUIPU_CALIPER, key, value != NULL ? value : name);
        return;
    }
    char text[512];
    snprintf(text, sizeof text, "%.200s=%.300s", name, value);
    quipu_open(QUIPU_CALIPER, key, text);
}

/* Begins an iteration for an attribute with an integer value. */
static void open_number(const char *name, long long number) {
    quipu_open_phase(QUIPU_CALIPER, quipu_region_name(name), name, number);
}

static void close_named(const char *name) { quipu_close(QUIPU_CALIPER, quipu_region_name(name)); }

/* Defines a pair of functions of Caliper whose only argument is a name. enter, leave: the code that begins and ends the
 * region. */
#define QUIPU_NAMED(begin, end, enter, leave)                                                                          \
    QUIPU_PUBLIC void begin(const char *name);                                                                         \
    void begin(const char *name) {                                                                                     \
        enter;                                                                                                         \
        void (*next)(const char *) = QUIPU_NEXT(void (*)(const char *), #begin);                                       \
        if (next != NULL)                                                                                              \
            next(name);                                                                                                \
    }                                                                                                                  \
    QUIPU_PUBLIC void end(const char *name);                                                                           \
    void end(const char *name) {                                                                                       \
        void (*next)(const char *) = QUIPU_NEXT(void (*)(const char *), #end);                                         \
        if (next != NULL)                                                                                              \
            next(name);                                                                                                \
        leave;                                                                                                         \
    }
QUIPU_NAMED(cali_begin_region, cali_end_region, quipu_region_begin(name), quipu_region_end(name))
QUIPU_NAMED(cali_begin_phase, cali_end_phase, quipu_region_begin(name), quipu_region_end(name))
QUIPU_NAMED(cali_begin_comm_region, cali_end_comm_region, quipu_region_begin(name), quipu_region_end(name))
QUIPU_NAMED(cali_begin_byname, cali_end_byname, open_value(name, NULL), close_named(name))

/* Defines a function of Caliper that begins an attribute with a value. enter: the code that begins the region. */
#define QUIPU_VALUE_OF(function, type, attribute_type, attribute_name, enter)                                          \
    QUIPU_PUBLIC void function(attribute_type of, type value);                                                         \
    void function(attribute_type of, type value) {                                                                     \
        const char *name = attribute_name;                                                                             \
        enter;                                                                                                         \
        void (*next)(attribute_type, type) = QUIPU_NEXT(void (*)(attribute_type, type), #function);                    \
        if (next != NULL)                                                                                              \
            next(of, value);                                                                                           \
    }
QUIPU_VALUE_OF(cali_begin_int, int, attribute, name_of(of), open_number(name, value))
QUIPU_VALUE_OF(cali_begin_double, double, attribute, name_of(of), open_value(name, NULL))
QUIPU_VALUE_OF(cali_begin_string, const char *, attribute, name_of(of), open_value(name, value))
QUIPU_VALUE_OF(cali_begin_int_byname, int, const char *, of, open_number(name, value))
QUIPU_VALUE_OF(cali_begin_double_byname, double, const char *, of, open_value(name, NULL))
QUIPU_VALUE_OF(cali_begin_string_byname, const char *, const char *, of, open_value(name, value))

QUIPU_PUBLIC void cali_begin(attribute of);
void cali_begin(attribute of) {
    open_value(name_of(of), NULL);
    void (*next)(attribute) = QUIPU_NEXT(void (*)(attribute), "cali_begin");
    if (next != NULL)
        next(of);
}

QUIPU_PUBLIC void cali_end(attribute of);
void cali_end(attribute of) {
    void (*next)(attribute) = QUIPU_NEXT(void (*)(attribute), "cali_end");
    if (next != NULL)
        next(of);
    close_named(name_of(of));
}

QUIPU_PUBLIC void cali_safe_end_string(attribute of, const char *value);
void cali_safe_end_string(attribute of, const char *value) {
    void (*next)(attribute, const char *) = QUIPU_NEXT(void (*)(attribute, const char *), "cali_safe_end_string");
    if (next != NULL)
        next(of, value);
    close_named(name_of(of));
}

/* Further symbols that programs with annotations of Caliper need if Caliper itself is not loaded. */
QUIPU_PUBLIC attribute cali_region_attr_id, cali_loop_attr_id, cali_function_attr_id, cali_class_iteration_attr_id;
attribute cali_region_attr_id = NO_ATTRIBUTE, cali_loop_attr_id = NO_ATTRIBUTE, cali_function_attr_id = NO_ATTRIBUTE,
          cali_class_iteration_attr_id = NO_ATTRIBUTE;

QUIPU_PUBLIC void cali_init(void);
void cali_init(void) {
    void (*next)(void) = QUIPU_NEXT(void (*)(void), "cali_init");
    if (next != NULL) {
        next();
        return;
    }
    cali_region_attr_id = new_attribute("region");
    cali_loop_attr_id = new_attribute("loop");
    cali_function_attr_id = new_attribute("function");
}

QUIPU_PUBLIC attribute cali_make_loop_iteration_attribute(const char *name);
attribute cali_make_loop_iteration_attribute(const char *name) {
    attribute (*next)(const char *) = QUIPU_NEXT(attribute(*)(const char *), "cali_make_loop_iteration_attribute");
    char text[300];
    snprintf(text, sizeof text, "iteration#%.280s", name != NULL ? name : "");
    return next != NULL ? next(name) : new_attribute(text);
}

QUIPU_PUBLIC attribute cali_create_attribute(const char *name, int type, int properties);
attribute cali_create_attribute(const char *name, int type, int properties) {
    attribute (*next)(const char *, int, int) =
        QUIPU_NEXT(attribute(*)(const char *, int, int), "cali_create_attribute");
    return next != NULL ? next(name, type, properties) : new_attribute(name);
}

/* Constructors and destructors of C++ objects that mark a region: the constructor begins the region, the destructor
 * ends it. The address of the object identifies the region. */
#define QUIPU_CONSTRUCTOR(function, symbol)                                                                            \
    QUIPU_PUBLIC void function(void *object, const char *name) __asm__(symbol);                                        \
    void function(void *object, const char *name) {                                                                    \
        quipu_open(QUIPU_CALIPER, object, name);                                                                       \
        void (*next)(void *, const char *) = QUIPU_NEXT(void (*)(void *, const char *), symbol);                       \
        if (next != NULL)                                                                                              \
            next(object, name);                                                                                        \
    }
#define QUIPU_END(function, symbol)                                                                                    \
    QUIPU_PUBLIC void function(void *object) __asm__(symbol);                                                          \
    void function(void *object) {                                                                                      \
        void (*next)(void *) = QUIPU_NEXT(void (*)(void *), symbol);                                                   \
        if (next != NULL)                                                                                              \
            next(object);                                                                                              \
        quipu_close(QUIPU_CALIPER, object);                                                                            \
    }
QUIPU_CONSTRUCTOR(scope_begin, "_ZN4cali15ScopeAnnotationC1EPKc")
QUIPU_CONSTRUCTOR(scope_begin_base, "_ZN4cali15ScopeAnnotationC2EPKc")
QUIPU_END(scope_end, "_ZN4cali15ScopeAnnotationD1Ev")
QUIPU_END(scope_end_base, "_ZN4cali15ScopeAnnotationD2Ev")
QUIPU_CONSTRUCTOR(function_begin, "_ZN4cali8FunctionC1EPKc")
QUIPU_CONSTRUCTOR(function_begin_base, "_ZN4cali8FunctionC2EPKc")
QUIPU_END(function_end, "_ZN4cali8FunctionD1Ev")
QUIPU_END(function_end_base, "_ZN4cali8FunctionD2Ev")

/* The latest loops of this thread, and the names of their iterations. of: first member of cali::Loop. The constructor
 * of an iteration gets only this pointer from its loop. */
static __thread struct {
    const void *of;
    const char *name;
} loops[16];
static __thread unsigned loop_count;

static void begin_loop(void **object, const char *name, void (*next)(void **, const char *)) {
    quipu_open(QUIPU_CALIPER, (const void *)object, name);
    if (next != NULL)
        next(object, name);
    else
        *object = (void *)object;
    char text[300];
    snprintf(text, sizeof text, "iteration#%.280s", name != NULL ? name : "");
    const unsigned place = loop_count++ % (sizeof loops / sizeof *loops);
    loops[place].of = *object;
    loops[place].name = quipu_region_name(text);
}

/* Returns the name for the iterations of a loop; NULL if the loop is not among the latest ones. */
static const char *loop_of(const void *made_with) {
    const unsigned room = sizeof loops / sizeof *loops;
    const unsigned known = loop_count < room ? loop_count : room;
    for (unsigned back = 1; back <= known; back++)
        if (loops[(loop_count - back) % room].of == made_with)
            return loops[(loop_count - back) % room].name;
    return NULL;
}

#define QUIPU_LOOP(function, symbol)                                                                                   \
    QUIPU_PUBLIC void function(void **object, const char *name) __asm__(symbol);                                       \
    void function(void **object, const char *name) {                                                                   \
        begin_loop(object, name, QUIPU_NEXT(void (*)(void **, const char *), symbol));                                 \
    }
#define QUIPU_ITERATION(function, symbol)                                                                              \
    QUIPU_PUBLIC void function(void *object, const void *made_with, int number) __asm__(symbol);                       \
    void function(void *object, const void *made_with, int number) {                                                   \
        const char *name = loop_of(made_with);                                                                         \
        if (name != NULL)                                                                                              \
            quipu_open_phase(QUIPU_CALIPER, object, name, number);                                                     \
        void (*next)(void *, const void *, int) = QUIPU_NEXT(void (*)(void *, const void *, int), symbol);             \
        if (next != NULL)                                                                                              \
            next(object, made_with, number);                                                                           \
    }
QUIPU_LOOP(loop_begin, "_ZN4cali4LoopC1EPKc")
QUIPU_LOOP(loop_begin_base, "_ZN4cali4LoopC2EPKc")
QUIPU_END(loop_end, "_ZN4cali4Loop3endEv")
QUIPU_END(loop_delete, "_ZN4cali4LoopD1Ev")
QUIPU_END(loop_delete_base, "_ZN4cali4LoopD2Ev")
QUIPU_ITERATION(iteration_begin, "_ZN4cali4Loop9IterationC1EPKNS0_4ImplEi")
QUIPU_ITERATION(iteration_begin_base, "_ZN4cali4Loop9IterationC2EPKNS0_4ImplEi")
QUIPU_END(iteration_end, "_ZN4cali4Loop9IterationD1Ev")
QUIPU_END(iteration_end_base, "_ZN4cali4Loop9IterationD2Ev")
