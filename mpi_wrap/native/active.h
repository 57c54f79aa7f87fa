/* SPDX-License-Identifier: Apache-2.0 */
/* Switches the wrappers on, and runs actions once per process or rank. */
#ifndef QUIPU_MPI_ACTIVE_H
#define QUIPU_MPI_ACTIVE_H

#include "mpi_at_hand.h" /* generated: the optional PMPI_ functions of this mpi.h */

#include <mpi.h>

/* Runs after MPI_Init: writes rank, number of ranks and MPI library as attributes of the profile. */
void quipu_mpi_initialized(void);
#ifdef QUIPU_MPI_HAVE_Session_init
/* Runs after MPI_Session_init: writes the same attributes in a program without MPI_Init. */
void quipu_mpi_session_begun(const MPI_Session *session);
/* Runs after MPI_Session_finalize; does the same as quipu_mpi_finalized if this was the last open session. */
void quipu_mpi_session_ended(void);
#endif
/* Runs after MPI_Finalize, when the profile contains all data of MPI. */
void quipu_mpi_finalized(void);

/* Runs after MPI_Cart_create and MPI_Dims_create (periods: NULL). */
void quipu_mpi_process_grid(int dimensions, const int *extents, const int *periods);

/* Runs before MPI_Finalize. The ranks reduce their profiles to one file if this is requested. */
void quipu_mpi_reduce_at_end(void);

/* Ends the process with a message if a part of the program calls another MPI library than the wrappers. */
void quipu_mpi_check_family(void);

#endif
