/* How the wrappers come between a program and SMPI. */
#ifndef QUIPU_MPI_SMPI_CALLS_H
#define QUIPU_MPI_SMPI_CALLS_H

/* From now on programs that SMPI loads call the wrappers. */
void quipu_mpi_replace_calls(void);

#endif
