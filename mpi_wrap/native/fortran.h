/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the wrappers of Fortran procedures. They convert special addresses (MPI_IN_PLACE), statuses and
 * requests between Fortran and C. */
#ifndef QUIPU_MPI_FORTRAN_H
#define QUIPU_MPI_FORTRAN_H

#include "requests.h"

#ifdef OPEN_MPI
/* Number of integers in a Fortran status. In Open MPI it has the same memory layout as a C status. */
enum { QUIPU_MPI_F_STATUS_SIZE = sizeof(MPI_Status) / sizeof(MPI_Fint) };

/* The requests and statuses of a Fortran wait or test procedure. */
struct quipu_mpi_fortran_completion {
    struct quipu_mpi_completion c; /* the same in C */
    int status_count;
    MPI_Fint *memory; /* more than QUIPU_MPI_FEW statuses that the program ignores; the wrapper frees them; else NULL */
    MPI_Fint few[QUIPU_MPI_FEW * QUIPU_MPI_F_STATUS_SIZE]; /* fewer such statuses */
};

/* Returns the buffer argument for C: MPI_IN_PLACE of C for MPI_IN_PLACE of Fortran, otherwise the same address. */
const void *quipu_mpi_fortran_buffer(const void *buffer);
/* Returns the procedure that a wrapper calls: a wrapper of another tool, or the procedure of MPI's Fortran library.
 * Ends the process if there is none. name: such as pmpi_send_. */
void *quipu_mpi_fortran_symbol(const char *name);
/* The same as quipu_mpi_await, for Fortran requests and statuses. */
void *quipu_mpi_fortran_await(struct quipu_mpi_fortran_completion *completion, int count, const void *requests,
                              void *statuses, int status_count);
/* Converts the Fortran statuses that MPI wrote to C. Call after the MPI call and before quipu_mpi_completed_*. */
void quipu_mpi_fortran_statuses(struct quipu_mpi_fortran_completion *completion, const void *statuses);
#endif

#endif
