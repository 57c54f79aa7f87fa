/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the wrappers of Fortran procedures. They convert special addresses (MPI_IN_PLACE), statuses and
 * requests between Fortran and C. */
#define _GNU_SOURCE
#include "fortran.h"

#ifdef OPEN_MPI

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int mpi_fortran_in_place_; /* the address of this variable is MPI_IN_PLACE in all Fortran bindings */

const void *quipu_mpi_fortran_buffer(const void *buffer) {
    return buffer == (const void *)&mpi_fortran_in_place_ ? MPI_IN_PLACE : buffer;
}

struct search {
    const char *symbol;
    void *found;
};

static int search_library(struct dl_phdr_info *info, size_t size, void *data) {
    struct search *search = data;
    (void)size;
    if (strstr(info->dlpi_name, "libmpi_") == NULL)
        return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL)
        return 0;
    search->found = dlsym(library, search->symbol);
    dlclose(library); /* the library stays loaded, because the caller of the procedure has loaded it */
    return search->found != NULL;
}

/* Returns the next definition of a procedure, if it does not belong to MPI (a wrapper of another tool); else NULL. */
static void *other_wrapper_of(const char *name) {
    void *next = dlsym(RTLD_NEXT, name);
    Dl_info info;
    if (next == NULL || dladdr(next, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    return strncmp(slash == NULL ? info.dli_fname : slash + 1, "libmpi", 6) == 0 ? NULL : next;
}

void *quipu_mpi_fortran_symbol(const char *name) {
    struct search search = {name, other_wrapper_of(name + 1)}; /* mpi_send_ for pmpi_send_ */
    if (search.found == NULL)
        search.found = dlsym(RTLD_DEFAULT, name);
    /* An extension module of an interpreter may have loaded the Fortran library with RTLD_LOCAL. */
    if (search.found == NULL)
        dl_iterate_phdr(search_library, &search);
    if (search.found == NULL) {
        fprintf(stderr,
                "quipu: the Fortran library of this MPI has no %s; run the program without the MPI "
                "wrappers [no-fortran-library]\n",
                name);
        abort();
    }
    return search.found;
}

void *quipu_mpi_fortran_await(struct quipu_mpi_fortran_completion *completion, int count, const void *requests,
                              void *statuses, int status_count) {
    const MPI_Fint *fortran = requests;
    const bool ignored = statuses == MPI_F_STATUS_IGNORE || statuses == MPI_F_STATUSES_IGNORE;
    MPI_Request few[QUIPU_MPI_FEW], *handles = few;
    completion->c.count = 0;
    completion->c.bytes = 0;
    completion->memory = NULL;
    if (count <= 0 || !quipu_mpi_any_request())
        return statuses;
    if (count > QUIPU_MPI_FEW && (handles = malloc((size_t)count * sizeof *handles)) == NULL)
        return statuses;
    for (int i = 0; i < count; i++)
        handles[i] = PMPI_Request_f2c(fortran[i]);
    quipu_mpi_await(&completion->c, count, handles, MPI_STATUSES_IGNORE, status_count);
    completion->c.base = 1;
    completion->status_count = status_count;
    if (handles != few)
        free(handles);
    if (!ignored || completion->c.count == 0)
        return statuses;
    memset(completion->few, 0, sizeof completion->few);
    if (status_count <= QUIPU_MPI_FEW)
        return completion->few;
    completion->memory = calloc((size_t)status_count, QUIPU_MPI_F_STATUS_SIZE * sizeof(MPI_Fint));
    if (completion->memory != NULL)
        return completion->memory;
    free(completion->c.memory);
    completion->c.count = 0;
    return statuses;
}

void quipu_mpi_fortran_statuses(struct quipu_mpi_fortran_completion *completion, const void *statuses) {
    const MPI_Fint *fortran = statuses;
    for (int i = 0; completion->c.count > 0 && i < completion->status_count; i++)
        PMPI_Status_f2c(fortran + (size_t)i * QUIPU_MPI_F_STATUS_SIZE, &completion->c.statuses[i]);
}

#endif
