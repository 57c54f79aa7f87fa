/* SPDX-License-Identifier: Apache-2.0 */
/* Switches the wrappers on, and runs actions once per process or rank. */
#ifndef QUIPU_MPI_ACTIVE_H
#define QUIPU_MPI_ACTIVE_H

#include "mpi_at_hand.h" /* generated: the optional PMPI_ functions of this mpi.h */

#include <mpi.h>

/* Runs after MPI_Init: writes rank, number of ranks and version of the MPI library as attributes of the profile. */
void quipu_mpi_initialized(void);
#ifdef QUIPU_MPI_HAVE_Session_init
/* Runs after MPI_Session_init: writes the same attributes in a program without MPI_Init. */
void quipu_mpi_session_begun(const MPI_Session *session);
/* Runs after MPI_Session_finalize; does the same as quipu_mpi_finalized if this was the last open session. */
void quipu_mpi_session_ended(void);
#endif
/* Runs after MPI_Finalize: writes the last attributes of MPI and updates the profile file. */
void quipu_mpi_finalized(void);

/* Records the process grid. Runs after MPI_Cart_create, and after MPI_Dims_create with `periods` = NULL. */
void quipu_mpi_process_grid(int dimensions, const int *extents, const int *periods);

/* Runs before MPI_Finalize. If QUIPU_MPI_REDUCE is 1, the ranks reduce their profiles to one file. */
void quipu_mpi_reduce_at_end(void);

/* Ends the process with a message if the program or one of its libraries was built for another MPI than the wrappers.
 */
void quipu_mpi_check_family(void);

#endif
