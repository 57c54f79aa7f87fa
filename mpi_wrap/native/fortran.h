/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the wrappers of Fortran procedures: sentinels, statuses and requests in their Fortran form. */
#ifndef QUIPU_MPI_FORTRAN_H
#define QUIPU_MPI_FORTRAN_H

#include "requests.h"

#ifdef OPEN_MPI
/* Open MPI's Fortran status is its C status, as integers. */
enum { QUIPU_MPI_F_STATUS_SIZE = sizeof(MPI_Status) / sizeof(MPI_Fint) };

struct quipu_mpi_fortran_completion {
    struct quipu_mpi_completion c;
    int status_count;
    MPI_Fint *memory; /* for more than a few statuses that the program ignores; the wrapper frees it */
    MPI_Fint few[QUIPU_MPI_FEW * QUIPU_MPI_F_STATUS_SIZE];
};

/* Returns the buffer for C, because Fortran has a separate MPI_IN_PLACE. */
const void *quipu_mpi_fortran_buffer(const void *buffer);
/* The address of a procedure of MPI's Fortran library; ends the process if there is none. */
void *quipu_mpi_fortran_symbol(const char *name);
/* As quipu_mpi_await, with requests and statuses in their Fortran form. */
void *quipu_mpi_fortran_await(struct quipu_mpi_fortran_completion *completion, int count, const void *requests,
                              void *statuses, int status_count);
/* Converts the statuses that MPI wrote for C. Call after the MPI call and before quipu_mpi_completed_*. */
void quipu_mpi_fortran_statuses(struct quipu_mpi_fortran_completion *completion, const void *statuses);
#endif

#endif
