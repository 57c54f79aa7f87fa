/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX 3 (nvtxTypes.h). The headers of NVTX in a program load the library that the environment variable
 * NVTX_INJECTION64_PATH names. This library replaces the functions in the tables of NVTX.
 *
 * Ranges of nvtxRangePush and nvtxRangePop are regions. Ranges of nvtxRangeStart and nvtxRangeEnd are not, because they
 * may overlap, and may end on another thread.
 */
#include "interface.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* Numbers of the modules, tables, callbacks and types of strings in nvtxTypes.h and nvToolsExt.h. */
enum { MODULE_CORE = 1, MODULE_CORE2 = 5, TABLE_CALLBACKS = 1 };
enum { PUSH_EX = 8, PUSH_A = 9, PUSH_W = 10, POP = 11 };
enum { DOMAIN_PUSH_EX = 4, DOMAIN_POP = 5, DOMAIN_STRING_A = 10, DOMAIN_STRING_W = 11, DOMAIN_A = 12, DOMAIN_W = 13 };
enum { TEXT_ASCII = 1, TEXT_WIDE = 2, TEXT_REGISTERED = 3 };

/* The beginning of nvtxEventAttributes_t. */
struct event {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t text_type;
    const void *text;
};

typedef void (*function)(void);
struct callbacks {
    size_t size;
    int (*functions)(int module, function ***table, unsigned *size);
};
typedef const void *(*export_table)(uint32_t number);

/* Returns a copy of a wide string as ASCII, with '?' for other characters. The caller frees it. */
static char *narrow(const wchar_t *text) {
    const size_t length = text != NULL ? wcslen(text) : 0;
    char *copy = malloc(length + 1);
    for (size_t i = 0; copy != NULL && i < length; i++)
        copy[i] = text[i] > 0 && text[i] < 0x80 ? (char)text[i] : '?';
    if (copy != NULL)
        copy[length] = '\0';
    return copy;
}

/* Begins a region. Returns the number of outer ranges, as nvtxRangePush does. */
static int push_text(const void *domain, const char *text) {
    quipu_open(QUIPU_NVTX, domain, text != NULL ? text : "");
    return (int)quipu_open_count(QUIPU_NVTX) - 1;
}

static int push_wide(const void *domain, const wchar_t *text) {
    char *copy = narrow(text);
    const int level = push_text(domain, copy);
    free(copy);
    return level;
}

static int push_event(const void *domain, const struct event *event) {
    if (event == NULL || event->size < sizeof *event)
        return push_text(domain, "");
    if (event->text_type == TEXT_WIDE)
        return push_wide(domain, event->text);
    const int has_text = event->text_type == TEXT_ASCII || event->text_type == TEXT_REGISTERED;
    return push_text(domain, has_text ? event->text : "");
}

/* Ends the innermost range of a domain. Returns the number of remaining ranges; -1 if no range is open. */
static int pop_in(const void *domain) {
    return quipu_close(QUIPU_NVTX, domain) ? (int)quipu_open_count(QUIPU_NVTX) : -1;
}

static int push_ex(const struct event *event) { return push_event(NULL, event); }
static int push_a(const char *text) { return push_text(NULL, text); }
static int push_w(const wchar_t *text) { return push_wide(NULL, text); }
static int pop(void) { return pop_in(NULL); }

/* Returns the handle of a registered string or a domain: the address of the stored name. */
static const void *kept_text(const void *domain, const char *text) {
    (void)domain;
    return quipu_region_name(text);
}
static const void *kept_wide(const void *domain, const wchar_t *text) {
    char *copy = narrow(text);
    const void *kept = kept_text(domain, copy);
    free(copy);
    return kept;
}
static const void *domain_a(const char *name) { return kept_text(NULL, name); }
static const void *domain_w(const wchar_t *name) { return kept_wide(NULL, name); }

/* Replaces a function of NVTX, if this version of NVTX has it. */
static void set(const struct callbacks *callbacks, int module, unsigned number, function to) {
    function **table = NULL;
    unsigned size = 0;
    if (callbacks->functions(module, &table, &size) && number < size && table[number] != NULL)
        *table[number] = to;
}

/* If the user set NVTX_INJECTION64_PATH to another tool, initializes this tool and returns true. Quipu then measures no
 * ranges, because NVTX allows only one tool per function. result: the result of the initialization. */
static bool give_to_other(export_table tables, int *result) {
    typedef int (*initialize)(export_table);
    const char *wanted = getenv("NVTX_INJECTION64_PATH");
    Dl_info self;
    if (wanted == NULL || *wanted == '\0' || !dladdr((void *)give_to_other, &self) || self.dli_fname == NULL)
        return false;
    void *other = dlopen(wanted, RTLD_LAZY);
    initialize begin = other != NULL ? (initialize)dlsym(other, "InitializeInjectionNvtx2") : NULL;
    Dl_info found;
    if (begin == NULL || (dladdr((void *)begin, &found) && found.dli_fbase == self.dli_fbase))
        return false;
    *result = begin(tables);
    return true;
}

QUIPU_PUBLIC int InitializeInjectionNvtx2(export_table tables);
int InitializeInjectionNvtx2(export_table tables) {
    int result = 0;
    if (give_to_other(tables, &result))
        return result;
    const struct callbacks *callbacks = tables(TABLE_CALLBACKS);
    if (!quipu_active() || callbacks == NULL || callbacks->size < sizeof *callbacks)
        return 0;
    set(callbacks, MODULE_CORE, PUSH_EX, (function)push_ex);
    set(callbacks, MODULE_CORE, PUSH_A, (function)push_a);
    set(callbacks, MODULE_CORE, PUSH_W, (function)push_w);
    set(callbacks, MODULE_CORE, POP, (function)pop);
    set(callbacks, MODULE_CORE2, DOMAIN_PUSH_EX, (function)push_event);
    set(callbacks, MODULE_CORE2, DOMAIN_POP, (function)pop_in);
    set(callbacks, MODULE_CORE2, DOMAIN_STRING_A, (function)kept_text);
    set(callbacks, MODULE_CORE2, DOMAIN_STRING_W, (function)kept_wide);
    set(callbacks, MODULE_CORE2, DOMAIN_A, (function)domain_a);
    set(callbacks, MODULE_CORE2, DOMAIN_W, (function)domain_w);
    return 1;
}
