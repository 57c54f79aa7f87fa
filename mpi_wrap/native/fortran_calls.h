/* How the wrappers come between mpi_f08 and MPI, with MPICH and MPIs made from it. */
#ifndef QUIPU_MPI_FORTRAN_CALLS_H
#define QUIPU_MPI_FORTRAN_CALLS_H

#include <mpi.h>

#ifndef OPEN_MPI
/* From now on the procedures of mpi_f08 that are loaded call the wrappers. */
void quipu_mpi_replace_fortran_calls(void);
#endif

#endif
