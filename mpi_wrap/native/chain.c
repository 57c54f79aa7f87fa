/* SPDX-License-Identifier: Apache-2.0 */
/* Chains several definitions of MPI functions in a process: PMPI libraries that are preloaded or linked, and functions
 * of the program.
 *
 * The loader directs calls of the program to the first definition. If it is ours, our wrapper calls the next
 * definition, which calls PMPI. If it is another definition, it calls PMPI_ functions. The addresses of these in the
 * tables of its object are replaced by our wrappers, which then call MPI. If the first definition is MPI itself,
 * because this library was loaded late, the tables of all callers get our wrappers. */
#define _GNU_SOURCE
#include "tables.h"

#ifndef SMPI_H

#include "quipu_runtime.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MOST_FUNCTIONS = 2048 };

/* State of the function with the same index in the table. */
static struct first {
    const void *object;    /* object with the first definition, if it is another library or the program */
    bool late;             /* MPI has the first definition */
    bool taken_in_fortran; /* calls of the Fortran procedure do not reach its wrapper */
    bool reached;          /* the object calls PMPI through a table that now contains our wrapper */
} firsts[MOST_FUNCTIONS];

static const void *base_of(const void *function) {
    Dl_info info;
    return function != NULL && dladdr(function, &info) != 0 ? info.dli_fbase : NULL;
}

/* Returns the load address. The program has the address of its file there; the object of the kernel has none. */
static const void *base_of_object(const struct link_map *object) { return base_of(object->l_ld); }

static size_t number_of(const struct quipu_mpi_replacement *function) {
    return (size_t)(function - quipu_mpi_replacements);
}

static bool is_of_mpi(const char *path) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash == NULL ? path : slash + 1, "libmpi", 6) == 0;
}

/* Libraries of MPI whose Fortran procedures call PMPI_ functions. With MPICH (libmpichfort, libmpifort, libmpichf90 of
 * older ones) these are the procedures of mpi_f08 without a buffer. With Open MPI (libmpi_mpifh) these are all
 * procedures. They have separate wrappers (emit_fortran.py), which a program skips if it defines the procedure itself
 * or starts measuring late. */
static bool is_fortran_library(const char *path) {
#ifdef OPEN_MPI
    return is_of_mpi(path) && strstr(path, "mpif") != NULL;
#else
    return is_of_mpi(path) && (strstr(path, "fort") != NULL || strstr(path, "f90") != NULL);
#endif
}

/* Returns whether another definition than the Fortran wrapper of a function is called. */
static bool is_taken_in_fortran(const char *function, const void *ours) {
#ifdef OPEN_MPI
    char name[128];
    size_t length = 0;
    for (; function[length] != '\0' && length < sizeof name - 2; length++)
        name[length] = (char)tolower((unsigned char)function[length]);
    name[length] = '_';
    name[length + 1] = '\0';
    const void *first = dlsym(RTLD_DEFAULT, name);
    return first != NULL && base_of(first) != ours;
#else
    (void)function, (void)ours;
    return true;
#endif
}

static const void *choose(const struct link_map *object, const char *name, bool own) {
    static const struct link_map *latest;
    static const void *base;
    const bool profiling = name[0] == 'P';
    const struct quipu_mpi_replacement *found = own ? NULL : quipu_mpi_find_replacement(name + profiling);
    if (found == NULL)
        return NULL;
    struct first *first = &firsts[number_of(found)];
    if (profiling && is_fortran_library(object->l_name))
        return first->taken_in_fortran ? found->function : NULL;
    if (!profiling)
        return first->late ? found->function : NULL;
    if (object != latest) {
        latest = object;
        base = base_of_object(object);
    }
    if (first->object == NULL || first->object != base)
        return NULL;
    first->reached = true;
    return found->function;
}

/* Reports the functions of another object that do not call PMPI in a way that can be counted. */
static void tell_owners(const struct link_map *object) {
    static char text[1024];
    const void *base = base_of_object(object);
    size_t used = 0;
    for (size_t i = 0; i < quipu_mpi_replacement_count; i++)
        if (firsts[i].object != NULL && firsts[i].object == base && !firsts[i].reached && used < sizeof text - 64)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "",
                                     quipu_mpi_replacements[i].name);
    if (used == 0)
        return;
    const char *path = object->l_name[0] != '\0' ? object->l_name : "the program";
    const char *slash = strrchr(path, '/');
    char problem[1200];
    snprintf(problem, sizeof problem,
             "%s calls MPI past the MPI library of Quipu, so these functions are not counted: %s",
             slash == NULL ? path : slash + 1, text);
    quipu_attribute("mpi_problem", problem);
}

void quipu_mpi_chain(void) {
    void *program = dlopen(NULL, RTLD_LAZY);
    const struct link_map *objects = NULL;
    if (program == NULL || dlinfo(program, RTLD_DI_LINKMAP, (void *)&objects) != 0)
        return;
    bool others = false;
    const void *of_mpi = NULL, *ours = base_of((const void *)firsts);
    for (size_t i = 0; i < quipu_mpi_replacement_count && i < MOST_FUNCTIONS; i++) {
        const struct quipu_mpi_replacement *function = &quipu_mpi_replacements[i];
        const void *mpi = *function->following;
        const void *first = dlsym(RTLD_DEFAULT, function->name);
        of_mpi = of_mpi == NULL ? base_of(mpi) : of_mpi;
        firsts[i].taken_in_fortran = is_taken_in_fortran(function->name, ours);
        if (first == function->function) {
            void *next = dlsym(RTLD_NEXT, function->name);
            const void *base = next == NULL || next == mpi ? NULL : base_of(next);
            if (base != NULL && base != of_mpi && base != ours)
                *function->following = next;
            continue;
        }
        const void *base = first == NULL ? NULL : base_of(first);
        firsts[i].late = first == mpi || base == NULL || base == of_mpi;
        firsts[i].object = firsts[i].late ? NULL : base;
        others = true;
    }
    for (const struct link_map *object = objects; object != NULL; object = object->l_next) {
        const void *base = base_of_object(object);
        if (base != ours && base != of_mpi && (others || is_fortran_library(object->l_name)))
            quipu_mpi_replace(object, choose);
    }
    for (const struct link_map *object = objects; others && object != NULL; object = object->l_next)
        if (quipu_active())
            tell_owners(object);
    dlclose(program);
}

#endif
