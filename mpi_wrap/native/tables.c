/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces addresses of functions in the address tables (global offset tables, GOT) of loaded objects (programs,
 * libraries).
 *
 * This is necessary for calls that do not reach the preloaded library: calls of programs that SMPI loads, and the calls
 * that chain.c describes. */
#define _GNU_SOURCE
#include "tables.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static int by_name(const void *name, const void *replacement) {
    return strcmp(name, ((const struct quipu_mpi_replacement *)replacement)->name);
}

const struct quipu_mpi_replacement *quipu_mpi_find_replacement(const char *name) {
    return strncmp(name, "MPI_", 4) != 0 ? NULL
                                         : bsearch(name, quipu_mpi_replacements, quipu_mpi_replacement_count,
                                                   sizeof *quipu_mpi_replacements, by_name);
}

const void *quipu_mpi_replacement_of(const char *name) {
    const struct quipu_mpi_replacement *found = quipu_mpi_find_replacement(name);
    return found == NULL ? NULL : found->function;
}

/* Writes a pointer into a table that may be read-only after relocation. */
static void write_pointer(void **at, const void *value) {
    const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)at & ~(size - 1);
    if (mprotect((void *)page, size, PROT_READ | PROT_WRITE) != 0) {
        fprintf(stderr, "quipu: MPI is not counted: mprotect: %s [mpi-not-counted]\n", strerror(errno));
        return;
    }
    memcpy((void *)at, (const void *)&value, sizeof value);
}

struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
};

static void replace_in(const struct link_map *object, struct tables tables, const ElfW(Rela) * relocations,
                       size_t bytes, quipu_mpi_choice *choose) {
    for (size_t i = 0; i < bytes / sizeof *relocations; i++) {
        const ElfW(Rela) *relocation = &relocations[i];
        const uint32_t type = ELF64_R_TYPE(relocation->r_info);
        if ((type != RELOCATION_OF_CALL && type != RELOCATION_OF_TABLE && type != RELOCATION_OF_ADDRESS) ||
            relocation->r_addend != 0)
            continue;
        const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(relocation->r_info)];
        const void *with = choose(object, tables.names + symbol->st_name, symbol->st_shndx != SHN_UNDEF);
        if (with != NULL)
            write_pointer((void **)(object->l_addr + relocation->r_offset), with);
    }
}

void quipu_mpi_replace(const struct link_map *object, quipu_mpi_choice *choose) {
    ElfW(Addr) value[DT_JMPREL + 1] = {0};
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag > 0 && entry->d_tag <= DT_JMPREL)
            value[entry->d_tag] = entry->d_un.d_val;
    const struct tables tables = {(const void *)value[DT_SYMTAB], (const void *)value[DT_STRTAB]};
    if (tables.symbols == NULL || tables.names == NULL)
        return;
    replace_in(object, tables, (const void *)value[DT_JMPREL], value[DT_PLTRELSZ], choose);
    replace_in(object, tables, (const void *)value[DT_RELA], value[DT_RELASZ], choose);
}

#ifdef SMPI_H
/* SMPI loads a copy of the program for each rank with RTLD_DEEPBIND, so the copy calls the MPI that it was linked with
 * and ignores preloaded libraries. The addresses of MPI functions in the tables of these copies are therefore replaced
 * by the wrappers. The tables of libsimgrid are changed, too, because its Fortran procedures call MPI through them. */
extern void smpi_bench_begin(void);

/* Returns the replacement of an MPI function, or of a function that reads the clock or sleeps; NULL: no change. */
static const void *in_either(const char *name) {
    const void *clock = quipu_mpi_clock_of(name);
    return clock != NULL ? clock : quipu_mpi_replacement_of(name);
}

static const void *in_program(const struct link_map *object, const char *name, bool own) {
    (void)object;
    return own ? NULL : in_either(name);
}

/* Defined if the program or a test was built with a sanitizer. Sanitizers do not support RTLD_DEEPBIND. */
extern void __sanitizer_print_stack_trace(void) __attribute__((weak));

/* Replaces dlopen, with which SMPI loads the program and its copy for each rank. */
static void *load(const char *file, int mode) {
    const bool watched = __sanitizer_print_stack_trace != NULL;
    void *program = dlopen(file, watched ? mode & ~RTLD_DEEPBIND : mode);
    const struct link_map *object = NULL;
    if (program != NULL && dlinfo(program, RTLD_DI_LINKMAP, (void *)&object) == 0)
        for (; object != NULL; object = object->l_next) /* including the libraries loaded with it */
            quipu_mpi_replace(object, in_program);
    return program;
}

/* Returns the replacement of a function in the tables of libsimgrid; NULL: no change. libsimgrid defines the functions
 * of MPI itself, and they are replaced nevertheless. */
static const void *in_simgrid(const struct link_map *object, const char *name, bool own) {
    (void)object, (void)own;
    return strcmp(name, "dlopen") == 0 ? (const void *)load : in_either(name);
}

void quipu_mpi_replace_calls(void) {
    Dl_info info;
    void *simgrid = NULL;
    if (dladdr1((const void *)smpi_bench_begin, &info, &simgrid, RTLD_DL_LINKMAP) == 0 || simgrid == NULL) {
        fputs("quipu: libsimgrid was not found: MPI is not counted [mpi-not-counted]\n", stderr);
        return;
    }
    quipu_mpi_replace(simgrid, in_simgrid);
}

#endif
