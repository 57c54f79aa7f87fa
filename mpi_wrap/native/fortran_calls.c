/* MPICH and MPIs made from it: how the wrappers come between mpi_f08 and MPI.
 *
 * Their Fortran library calls MPI_ functions, which are wrapped, but for procedures of mpi_f08 without a buffer
 * (MPI_Init, MPI_Wait, MPI_Barrier): these call PMPI_ functions. In its tables those become the MPI_ functions.
 */
#define _GNU_SOURCE
#include "fortran_calls.h"

#include "tables.h"

#if defined(QUIPU_MPI_TABLES) && !defined(SMPI_H)

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* libmpichfort, libmpifort, and libmpichf90 of older ones; not libmpi, and no other tool that uses PMPI_. */
static bool is_fortran_library(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    return strncmp(name, "libmpi", 6) == 0 && (strstr(name, "fort") != NULL || strstr(name, "f90") != NULL);
}

static const void *in_fortran_library(const char *name, bool own) {
    return own || name[0] != 'P' ? NULL : quipu_mpi_replacement_of(name + 1);
}

void quipu_mpi_replace_fortran_calls(void) {
    void *program = dlopen(NULL, RTLD_LAZY);
    const struct link_map *object = NULL;
    if (program == NULL || dlinfo(program, RTLD_DI_LINKMAP, (void *)&object) != 0)
        return;
    for (; object != NULL; object = object->l_next)
        if (is_fortran_library(object->l_name))
            quipu_mpi_replace(object, in_fortran_library);
    dlclose(program);
}

#endif
