/* SPDX-License-Identifier: Apache-2.0 */
/* Ends a process with a message if its program or an extension module was built for another MPI than the wrappers.
 * Otherwise the process would crash, because the handles and constants of the two MPIs differ. */
#define _GNU_SOURCE
#include "active.h"

#include <mpi.h>

#ifndef SMPI_H

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(OPEN_MPI)
#define OTHER "MPICH"
#else
#define OTHER "Open MPI"
#endif

/* Returns whether a library belongs to the other MPI, by its file name. mpi_wrap/program.py has the same names. */
static bool is_of_other(const char *library) {
    const char *name = strrchr(library, '/');
    name = name == NULL ? library : name + 1;
#if defined(OPEN_MPI)
    const char *end = strstr(name, ".so.12");
    return end != NULL && end[6] == '\0' &&
           (strncmp(name, "libmpi.", 7) == 0 || strncmp(name, "libmpich.", 9) == 0 ||
            strncmp(name, "libmpi_cray.", 12) == 0 || strncmp(name, "libmpi_gnu", 10) == 0 ||
            strncmp(name, "libmpi_intel", 12) == 0);
#else
    return strncmp(name, "libmpi.so.", 10) == 0 && name[10] >= '2' && name[10] <= '9' && name[11] >= '0' &&
           name[11] <= '9' && name[12] == '\0';
#endif
}

/* Returns 1 and stores the object in *found if a loaded object (but not a library of MPI itself) was linked with the
 * other MPI. Only the DT_NEEDED entries of the object count. A library that translates between MPIs has no such entry:
 * it loads its MPI with dlopen. */
static int find_other(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    if (strstr(object->dlpi_name, "/libmpi") != NULL)
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entries = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        const char *names = NULL;
        for (const ElfW(Dyn) *entry = entries; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_STRTAB)
                names = (const char *)entry->d_un.d_ptr;
        /* The object of the kernel (vDSO) is not relocated. */
        if (names == NULL || names < (const char *)object->dlpi_addr)
            continue;
        for (const ElfW(Dyn) *entry = entries; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == DT_NEEDED && is_of_other(names + entry->d_un.d_val)) {
                *(struct dl_phdr_info *)found = *object;
                return 1;
            }
        }
    }
    return 0;
}

void quipu_mpi_check_family(void) {
    struct dl_phdr_info found = {0};
    if (dl_iterate_phdr(find_other, &found) == 0)
        return;
    fprintf(stderr,
            "quipu: error: %s was built for " OTHER ", but the launcher and libquipu_mpi.so are of another MPI: start "
            "the program with the launcher of " OTHER ", and name its mpicc in QUIPU_MPICC [other-mpi]\n",
            *found.dlpi_name != '\0' ? found.dlpi_name : "the program");
    _exit(1); /* exit handlers could call the wrong MPI */
}

#endif
