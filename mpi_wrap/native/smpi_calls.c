/* SimGrid SMPI: how the wrappers come between program and MPI.
 *
 * SMPI loads a copy of the program for each rank such that it prefers the MPI that it was linked with (RTLD_DEEPBIND),
 * so a library that is preloaded is not asked. Instead the addresses of MPI functions in the tables of what SMPI has
 * loaded are replaced; so are those in libsimgrid itself, through which its Fortran bindings go.
 */
#define _GNU_SOURCE
#include "smpi_calls.h"

#include "tables.h"

#ifdef SMPI_H

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

extern void smpi_bench_begin(void);

static const void *in_program(const char *name, bool own) { return own ? NULL : quipu_mpi_replacement_of(name); }

/* Of sanitizers (of the program, or of our own tests), which refuse RTLD_DEEPBIND. */
extern void __sanitizer_print_stack_trace(void) __attribute__((weak));

/* What SMPI calls to load the program, or the copy of it for a rank. */
static void *load(const char *file, int mode) {
    const bool watched = __sanitizer_print_stack_trace != NULL;
    void *program = dlopen(file, watched ? mode & ~RTLD_DEEPBIND : mode);
    const struct link_map *object = NULL;
    if (program != NULL && dlinfo(program, RTLD_DI_LINKMAP, (void *)&object) == 0)
        for (; object != NULL; object = object->l_next) /* and the libraries that came with it */
            quipu_mpi_replace(object, in_program);
    return program;
}

/* In libsimgrid, which defines MPI itself. */
static const void *in_simgrid(const char *name, bool own) {
    (void)own;
    return strcmp(name, "dlopen") == 0 ? (const void *)load : quipu_mpi_replacement_of(name);
}

void quipu_mpi_replace_calls(void) {
    Dl_info info;
    void *simgrid = NULL;
    if (dladdr1((const void *)smpi_bench_begin, &info, &simgrid, RTLD_DL_LINKMAP) == 0 || simgrid == NULL) {
        fputs("quipu: libsimgrid was not found: MPI is not counted\n", stderr);
        return;
    }
    quipu_mpi_replace(simgrid, in_simgrid);
}

#endif
