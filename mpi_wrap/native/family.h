/* Programs that call another MPI than that of the wrappers. */
#ifndef QUIPU_MPI_FAMILY_H
#define QUIPU_MPI_FAMILY_H

/* Ends the process, with a message, if parts of it call another MPI than that of the wrappers. */
void quipu_mpi_check_family(void);

#endif
