/* The reduction of the profiles of all ranks in MPI_Finalize (docs/design/reduction.md). */
#ifndef QUIPU_MPI_REDUCE_AT_END_H
#define QUIPU_MPI_REDUCE_AT_END_H

/* Before MPI_Finalize: the ranks reduce their profiles to one file, if that is wanted. */
void quipu_mpi_reduce_at_end(void);

#endif
