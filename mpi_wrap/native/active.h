/* SPDX-License-Identifier: Apache-2.0 */
/* Switches the wrappers on, and runs actions once per process or rank. */
#ifndef QUIPU_MPI_ACTIVE_H
#define QUIPU_MPI_ACTIVE_H

#include "mpi_at_hand.h" /* generated: the optional PMPI_ functions of this mpi.h */

#include <mpi.h>

/* After MPI_Init: rank, number of ranks and MPI library become attributes of the profile. */
void quipu_mpi_initialized(void);
#ifdef QUIPU_MPI_HAVE_Session_init
/* Sets the same attributes after MPI_Session_init, in a program without MPI_Init. */
void quipu_mpi_session_begun(const MPI_Session *session);
/* After MPI_Session_finalize: as quipu_mpi_finalized if it was the last one. */
void quipu_mpi_session_ended(void);
#endif
/* Runs after MPI_Finalize. The profile contains all data of MPI. */
void quipu_mpi_finalized(void);

/* After MPI_Cart_create and MPI_Dims_create, which has no periods. */
void quipu_mpi_process_grid(int dimensions, const int *extents, const int *periods);

/* Runs before MPI_Finalize. The ranks reduce their profiles to one file if this is requested. */
void quipu_mpi_reduce_at_end(void);

/* Ends the process, with a message, if parts of it call another MPI than that of the wrappers. */
void quipu_mpi_check_family(void);

#endif
