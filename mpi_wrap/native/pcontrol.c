/* SPDX-License-Identifier: Apache-2.0 */
/* MPI_Pcontrol(1, "name") and MPI_Pcontrol(-1, "name") begin and end a region, as in IPM (ipm-hpc, "Regions").
 *
 * A program written for another tool may call MPI_Pcontrol(1) without a name. va_arg then returns an arbitrary value. A
 * value is accepted as a name only if it points to text in read-only memory: a literal of the program or of a library.
 */
#define _GNU_SOURCE
#include "active.h"

#include "quipu_runtime.h"

#define QUIPU_REGION_RUNTIME
#include "quipu/region.h"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LONGEST = 256 };

struct search {
    uintptr_t address;
    size_t room; /* bytes from the address to the end of its read-only segment; 0: it is in no such segment */
};

static int look(struct dl_phdr_info *object, size_t size, void *data) {
    struct search *search = data;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || (part->p_flags & PF_W) || search->address < begin ||
            search->address - begin >= part->p_memsz)
            continue;
        search->room = part->p_memsz - (search->address - begin);
        return 1;
    }
    return 0;
}

/* Returns whether the argument is a name: text without control characters in read-only memory. It may be any value. */
static bool is_name(const char *text) {
    struct search search = {(uintptr_t)text, 0};
    dl_iterate_phdr(look, &search);
    size_t length = 0;
    while (length < search.room && length < LONGEST && text[length] >= ' ' && text[length] != 0x7f)
        length++;
    return length > 0 && length < search.room && text[length] == '\0';
}

__attribute__((visibility("default"))) int MPI_Pcontrol(const int level, ...) {
    va_list arguments;
    va_start(arguments, level);
    const char *name = va_arg(arguments, const char *);
    va_end(arguments);
    const bool named = (level == 1 || level == -1) && quipu_active() && is_name(name);
    if (named && level == 1)
        quipu_region_begin(name);
    /* Call the next definition: the library of another tool, or MPI. */
    typedef int (*function)(const int, ...);
    static function next;
    if (next == NULL)
        next = (function)dlsym(RTLD_NEXT, "MPI_Pcontrol");
    const int result = next != NULL ? next(level, name) : MPI_SUCCESS;
    if (named && level == -1)
        quipu_region_end(name);
    return result;
}
