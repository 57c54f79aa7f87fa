/* SPDX-License-Identifier: Apache-2.0 */
/* Adiak (adiak.h, adiak.hpp): the named numbers that the program registers become parameters of the run. */
#include "interface.h"

#include <stdarg.h>
#include <string.h>

enum { CATEGORY_PERFORMANCE = 3 }; /* values of this category are results, and not parameters */
enum { LONG = 1, ULONG, INT, UINT, DOUBLE, LONG_LONG = 16, ULONG_LONG }; /* adiak_type_t */

union value {
    long as_long;
    int as_int;
    double as_double;
    void *as_pointer;
    long long as_long_long;
};

typedef int (*raw_function)(const char *, int, const char *, union value *, const int *);

/* Returns whether the program made this call, and not Adiak itself, which also registers values such as the number of
 * ranks. caller: the return address of the call. next: the function of Adiak; NULL if Adiak is not loaded. */
static bool is_of_program(const void *caller, const void *next) {
    Dl_info from, adiak;
    return next == NULL || !dladdr(caller, &from) || !dladdr(next, &adiak) || from.dli_fbase != adiak.dli_fbase;
}

/* Records a value as a parameter of the run, unless it is a result or not a number. */
static void take(const char *name, int category, int type, union value value) {
    if (name == NULL || category == CATEGORY_PERFORMANCE)
        return;
    switch (type) {
    case LONG:
        quipu_parameter(name, (double)value.as_long);
        break;
    case ULONG:
        quipu_parameter(name, (double)(unsigned long)value.as_long);
        break;
    case INT:
        quipu_parameter(name, value.as_int);
        break;
    case UINT:
        quipu_parameter(name, (unsigned)value.as_int);
        break;
    case DOUBLE:
        quipu_parameter(name, value.as_double);
        break;
    case LONG_LONG:
        quipu_parameter(name, (double)value.as_long_long);
        break;
    case ULONG_LONG:
        quipu_parameter(name, (double)(unsigned long long)value.as_long_long);
        break;
    default: /* not a number */
        break;
    }
}

/* Returns the type that a format of Adiak ("%d") means; 0 for types that are not numbers. */
static int type_of(const char *text) {
    static const struct {
        const char *text;
        int type;
    } types[] = {{"%d", INT},    {"%u", UINT},        {"%ld", LONG},       {"%lu", ULONG},
                 {"%f", DOUBLE}, {"%lld", LONG_LONG}, {"%llu", ULONG_LONG}};
    for (size_t i = 0; text != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(text, types[i].text) == 0)
            return types[i].type;
    return 0;
}

QUIPU_PUBLIC int adiak_namevalue(const char *name, int category, const char *subcategory, const char *type, ...);
int adiak_namevalue(const char *name, int category, const char *subcategory, const char *type, ...) {
    typedef int (*variadic)(const char *, int, const char *, const char *, ...);
    variadic next = QUIPU_NEXT(variadic, "adiak_namevalue");
    /* The types of the variadic arguments are unknown, but all of them must be passed on to Adiak. The ABI keeps
     * integers and pointers in one set of registers and floating-point numbers in another, each in the order of the
     * arguments (System V ABI of x86-64, section 3.5.7; AAPCS64, appendix B). So both sets are read and passed on.
     * WORDS and NUMBERS: the most arguments of each kind that Adiak uses. */
    enum { WORDS = 8, NUMBERS = 4 };
    long word[WORDS];
    double number[NUMBERS];
    va_list words, numbers;
    va_start(words, type);
    va_copy(numbers, words);
    for (int i = 0; i < WORDS; i++)
        word[i] = va_arg(words, long);
    for (int i = 0; i < NUMBERS; i++)
        number[i] = va_arg(numbers, double);
    va_end(words);
    va_end(numbers);
    const int kind = type_of(type);
    const union value value =
        kind == DOUBLE ? (union value){.as_double = number[0]} : (union value){.as_long = word[0]};
    if (is_of_program(__builtin_return_address(0), (const void *)next))
        take(name, category, kind, value);
    return next == NULL ? 0
                        : next(name, category, subcategory, type, word[0], word[1], word[2], word[3], word[4], word[5],
                               word[6], word[7], number[0], number[1], number[2], number[3]);
}

QUIPU_PUBLIC int adiak_raw_namevalue(const char *, int, const char *, union value *, const int *);
int adiak_raw_namevalue(const char *name, int category, const char *subcategory, union value *value, const int *type) {
    raw_function next = QUIPU_NEXT(raw_function, "adiak_raw_namevalue");
    if (value != NULL && type != NULL && is_of_program(__builtin_return_address(0), (const void *)next))
        take(name, category, *type, *value);
    return next == NULL ? 0 : next(name, category, subcategory, value, type);
}

QUIPU_PUBLIC void adiak_init(void *communicator);
void adiak_init(void *communicator) {
    typedef void (*initialize)(void *);
    initialize next = QUIPU_NEXT(initialize, "adiak_init");
    if (next != NULL)
        next(communicator);
}

QUIPU_PUBLIC void adiak_fini(void);
void adiak_fini(void) {
    typedef void (*finish)(void);
    finish next = QUIPU_NEXT(finish, "adiak_fini");
    if (next != NULL)
        next();
}
