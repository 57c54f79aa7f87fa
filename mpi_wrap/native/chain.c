/* SPDX-License-Identifier: Apache-2.0 */
/* Lets all definitions of an MPI function in a process run one after the other: the wrappers of this library, of other
 * PMPI libraries, and of the program itself.
 *
 * The dynamic loader directs a call of MPI_X to the first definition in its search order.
 * - The first definition is our wrapper: it calls the next definition, which calls PMPI_X.
 * - The first definition is another wrapper, which calls PMPI_X: the address of PMPI_X in the address table (GOT) of
 *   its object is replaced by our wrapper, which calls MPI.
 * - The first definition is MPI itself, because this library was loaded late: the address of MPI_X is replaced by our
 *   wrapper in the tables of all objects. */
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

/* The first definition of each function, by its index in quipu_mpi_replacements. */
static struct first {
    const void *object;    /* load address of the object with this definition; NULL: this library, or MPI */
    bool late;             /* the definition belongs to MPI */
    bool taken_in_fortran; /* calls of the Fortran procedure do not reach its wrapper */
    bool reached;          /* the object calls PMPI through a table that now contains our wrapper */
} firsts[QUIPU_MPI_MOST_REPLACEMENTS];

static const void *base_of(const void *function) {
    Dl_info info;
    return function != NULL && dladdr(function, &info) != 0 ? info.dli_fbase : NULL;
}

/* Returns the address at which the file of an object is loaded; NULL for the object of the kernel (vDSO). l_addr is not
 * this address: it is 0 for a program with fixed addresses. */
static const void *base_of_object(const struct link_map *object) { return base_of(object->l_ld); }

static size_t number_of(const struct quipu_mpi_replacement *function) {
    return (size_t)(function - quipu_mpi_replacements);
}

static bool is_of_mpi(const char *path) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash == NULL ? path : slash + 1, "libmpi", 6) == 0;
}

/* Returns whether an object is a library of MPI whose Fortran procedures call PMPI_ functions of C. In MPICH
 * (libmpichfort, libmpifort, in older versions libmpichf90) these are the procedures of mpi_f08 without a buffer. In
 * Open MPI (libmpi_mpifh) these are all procedures. The procedures of Open MPI have separate wrappers
 * (emit_fortran.py). Calls do not reach these wrappers if the program defines the procedure itself, or if this library
 * was loaded late. */
static bool is_fortran_library(const char *path) {
#ifdef OPEN_MPI
    return is_of_mpi(path) && strstr(path, "mpif") != NULL;
#else
    return is_of_mpi(path) && (strstr(path, "fort") != NULL || strstr(path, "f90") != NULL);
#endif
}

/* Returns whether calls of the Fortran procedure of a function reach another definition than our Fortran wrapper. ours:
 * load address of this library. */
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

/* Returns the wrapper that replaces a function in the tables of an object; NULL: no change (quipu_mpi_choice). */
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

/* Records which functions of an object call MPI without reaching our wrappers. */
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
    for (size_t i = 0; i < quipu_mpi_replacement_count; i++) {
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
