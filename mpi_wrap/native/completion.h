/* Wait and test functions: which requests completed, and with what status. */
#ifndef QUIPU_MPI_COMPLETION_H
#define QUIPU_MPI_COMPLETION_H

#include <mpi.h>
#include <stdint.h>

enum { QUIPU_MPI_FEW = 32 };

/* The requests and statuses of a wait or test call. MPI overwrites the handles, and the statuses may be ignored
 * by the program but are needed here. */
struct quipu_mpi_completion {
    int count; /* 0: nothing to settle */
    int base;  /* number of the first request: 1 in Fortran */
    uint64_t time;
    uint64_t bytes; /* received by the requests that are complete */
    MPI_Request *handles;
    MPI_Status *statuses;
    void *memory; /* of more than a few */
    MPI_Request few_handles[QUIPU_MPI_FEW];
    MPI_Status few_statuses[QUIPU_MPI_FEW];
};

/* Before the call. Returns the statuses to pass to MPI: those of the program unless it ignores them. */
MPI_Status *quipu_mpi_await(struct quipu_mpi_completion *completion, int count, const MPI_Request *requests,
                            MPI_Status *statuses, int status_count);
/* After the call. flag: NULL for wait functions. */
void quipu_mpi_completed_one(struct quipu_mpi_completion *completion, int result, const MPI_Request *requests,
                             const int *index, const int *flag);
void quipu_mpi_completed_some(struct quipu_mpi_completion *completion, int result, const int *count,
                              const int *indices);
void quipu_mpi_completed_all(struct quipu_mpi_completion *completion, int result, const int *flag);
/* Before and after MPI_Request_free. */
void quipu_mpi_before_free(struct quipu_mpi_completion *completion, const MPI_Request *request);
void quipu_mpi_after_free(struct quipu_mpi_completion *completion, int result);

#endif
