/* SimGrid SMPI: ranks are actors in one process, and time is simulated. */
#ifndef QUIPU_MPI_SMPI_H
#define QUIPU_MPI_SMPI_H

#include <mpi.h>

#ifdef SMPI_H
/* Ranks share the process and its threads. */
struct quipu_mpi_rank {
    void *runtime;        /* the runtime's state of it */
    void *active_wrapper; /* see call.h */
    double speed;         /* simulated seconds that a second of computation here takes, 0 outside of MPI */
};
/* The rank that runs; NULL if none does. */
struct quipu_mpi_rank *quipu_mpi_running(void);
/* Makes the actors the ranks of the runtime, before anything is measured. */
void quipu_mpi_share(void);
/* Before a function that takes simulated time: what was computed until now is simulated. */
void quipu_mpi_compute(void);
/* After it: simulated time goes on from here. */
void quipu_mpi_simulated(void);
#endif

#endif
