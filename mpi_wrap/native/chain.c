/* SPDX-License-Identifier: Apache-2.0 */
/* Other definitions of MPI functions in the process: PMPI libraries that are preloaded or linked, and the program's
 * own.
 *
 * The definition that comes first for the loader gets the calls of the program. If it is ours, it calls the next one,
 * and that calls PMPI. If it is another one, it calls PMPI_ functions: in the tables of its object those become our
 * wrappers, which then call MPI. If it is that of MPI itself, because this library was loaded late, all callers are
 * led to our wrappers.
 */
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

/* Of the function with the same number in the table. */
static struct first {
    const void *object;    /* where the first definition is, if it is another library or the program */
    bool late;             /* the first definition is that of MPI */
    bool taken_in_fortran; /* the Fortran procedure does not come to its wrapper */
    bool reached;          /* the object calls PMPI through a table, where our wrapper is now */
} firsts[MOST_FUNCTIONS];

static const void *base_of(const void *function) {
    Dl_info info;
    return function != NULL && dladdr(function, &info) != 0 ? info.dli_fbase : NULL;
}

/* The program has the load address of its file there, the kernel's own object has nothing. */
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

/* Whether the Fortran wrapper of a function is not the one that is called. */
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

/* Says which functions another object takes without a call of PMPI that can be counted. */
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
