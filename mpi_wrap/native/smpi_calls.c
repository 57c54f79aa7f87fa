/* SimGrid SMPI: how the wrappers come between program and MPI.
 *
 * SMPI loads a copy of the program for each rank such that it prefers the MPI that it was linked with (RTLD_DEEPBIND),
 * so a library that is preloaded is not asked. Instead the addresses of MPI functions in the tables of what SMPI has
 * loaded are replaced; so are those in libsimgrid itself, through which its Fortran bindings go.
 */
#define _GNU_SOURCE
#include "quipu_mpi.h"

#ifdef SMPI_H

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define RELOCATION_OF_CALL R_X86_64_JUMP_SLOT
#define RELOCATION_OF_TABLE R_X86_64_GLOB_DAT
#define RELOCATION_OF_ADDRESS R_X86_64_64
#elif defined(__aarch64__)
#define RELOCATION_OF_CALL R_AARCH64_JUMP_SLOT
#define RELOCATION_OF_TABLE R_AARCH64_GLOB_DAT
#define RELOCATION_OF_ADDRESS R_AARCH64_ABS64
#else
#error "the relocations of this processor are not known here"
#endif

extern void smpi_bench_begin(void);

static int by_name(const void *name, const void *replacement) {
    return strcmp(name, ((const struct quipu_mpi_replacement *)replacement)->name);
}

static const void *replacement_of(const char *name) {
    const struct quipu_mpi_replacement *found = strncmp(name, "MPI_", 4) != 0
                                                    ? NULL
                                                    : bsearch(name, quipu_mpi_replacements, quipu_mpi_replacement_count,
                                                              sizeof *quipu_mpi_replacements, by_name);
    return found == NULL ? NULL : found->function;
}

/* Write a pointer into a table that may be read-only after relocation. */
static void write_pointer(void **at, const void *value) {
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)at & ~(size - 1);
    if (mprotect((void *)page, size, PROT_READ | PROT_WRITE) != 0) {
        perror("quipu: MPI is not counted: mprotect");
        return;
    }
    memcpy((void *)at, (const void *)&value, sizeof value);
}

struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
};

static void replace_in(const struct link_map *object, struct tables tables, const ElfW(Rela) * relocations,
                       size_t bytes, const char *also, const void *also_with) {
    for (size_t i = 0; i < bytes / sizeof *relocations; i++) {
        const ElfW(Rela) *relocation = &relocations[i];
        const uint32_t type = ELF64_R_TYPE(relocation->r_info);
        if ((type != RELOCATION_OF_CALL && type != RELOCATION_OF_TABLE && type != RELOCATION_OF_ADDRESS) ||
            relocation->r_addend != 0)
            continue;
        const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(relocation->r_info)];
        const char *name = tables.names + symbol->st_name;
        const void *with = also != NULL && strcmp(name, also) == 0         ? also_with
                           : also != NULL || symbol->st_shndx == SHN_UNDEF ? replacement_of(name)
                                                                           : NULL; /* a function of the program's own */
        if (with != NULL)
            write_pointer((void **)(object->l_addr + relocation->r_offset), with);
    }
}

/* In the tables of one object; `also`: one more function (of libsimgrid, which defines MPI itself), or NULL. */
static void replace(const struct link_map *object, const char *also, const void *also_with) {
    struct tables tables = {NULL, NULL};
    const ElfW(Rela) *calls = NULL, *others = NULL;
    size_t calls_bytes = 0, others_bytes = 0;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            tables.symbols = (const void *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_STRTAB)
            tables.names = (const char *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_JMPREL)
            calls = (const void *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_PLTRELSZ)
            calls_bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_RELA)
            others = (const void *)entry->d_un.d_ptr;
        else if (entry->d_tag == DT_RELASZ)
            others_bytes = entry->d_un.d_val;
    }
    if (tables.symbols == NULL || tables.names == NULL)
        return;
    if (calls != NULL)
        replace_in(object, tables, calls, calls_bytes, also, also_with);
    if (others != NULL)
        replace_in(object, tables, others, others_bytes, also, also_with);
}

/* Of sanitizers (of the program, or of our own tests), which refuse RTLD_DEEPBIND. */
extern void __sanitizer_print_stack_trace(void) __attribute__((weak));

/* What SMPI calls to load the program, or the copy of it for a rank. */
static void *load(const char *file, int mode) {
    const bool watched = __sanitizer_print_stack_trace != NULL;
    void *program = dlopen(file, watched ? mode & ~RTLD_DEEPBIND : mode);
    const struct link_map *object = NULL;
    if (program != NULL && dlinfo(program, RTLD_DI_LINKMAP, (void *)&object) == 0)
        for (; object != NULL; object = object->l_next) /* and the libraries that came with it */
            replace(object, NULL, NULL);
    return program;
}

void quipu_mpi_replace_calls(void) {
    Dl_info info;
    void *simgrid = NULL;
    if (dladdr1((const void *)smpi_bench_begin, &info, &simgrid, RTLD_DL_LINKMAP) == 0 || simgrid == NULL) {
        fputs("quipu: libsimgrid was not found: MPI is not counted\n", stderr);
        return;
    }
    replace(simgrid, "dlopen", (const void *)load);
}

#endif
