/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose bytes are known only later, and the functions that complete them. */
#ifndef QUIPU_MPI_REQUESTS_H
#define QUIPU_MPI_REQUESTS_H

#include "call.h"

/* MPICH and derived MPIs do not set the status of a nonblocking MPI_Sendrecv; it contains values of the previous
 * request. */
#if defined(OPEN_MPI) || defined(SMPI_H)
#define QUIPU_MPI_LACKS_STATUS false
#else
#define QUIPU_MPI_LACKS_STATUS true
#endif

/* A request that counts later: a receive (its status has the bytes), or a persistent request. */
struct quipu_mpi_request {
    struct quipu_node *node; /* the call path that gets the counts: it posted or started the request */
    uint64_t sent, received; /* known bytes, of a persistent request or if no status contains them */
    bool message_sent, message_received;
    bool from_status; /* `received` comes from the status */
    bool persistent;
    bool active; /* persistent: started and not complete */
    int processes;
    bool has_partner; /* persistent: whether it sends messages to one rank */
    int partner;      /* this rank in MPI_COMM_WORLD */
};

/* Stores a request that MPI has just returned. */
void quipu_mpi_posted(MPI_Request handle, struct quipu_mpi_request request);
/* Notes that the call path `node` started a persistent request. */
void quipu_mpi_started(MPI_Request handle, struct quipu_node *node);
/* Returns the number of requests stored so far. Requests stored after this moment are later, even if MPI reused a
 * handle that another thread is completing. */
uint64_t quipu_mpi_request_time(void);
/* Returns whether any request is stored. */
bool quipu_mpi_any_request(void);
/* Returns whether a receive with this handle is stored. */
bool quipu_mpi_is_receive(MPI_Request handle);
/* Counts a complete request that was stored no later than `time`. A persistent request stays. Returns its received
 * bytes. */
uint64_t quipu_mpi_settle(MPI_Request handle, uint64_t time, const MPI_Status *status);
/* Removes a request without a result. */
void quipu_mpi_forget(MPI_Request handle, uint64_t time, bool persistent_too);

enum { QUIPU_MPI_FEW = 32 };

/* The requests and statuses of a wait or test call. MPI overwrites the handles. The program may ignore the statuses,
 * but they are necessary here. */
struct quipu_mpi_completion {
    int count; /* 0: nothing to settle */
    int base;  /* number of the first request: 1 in Fortran */
    uint64_t time;
    uint64_t bytes; /* received by the requests that are complete */
    MPI_Request *handles;
    MPI_Status *statuses;
    void *memory; /* allocated if the call has many requests; otherwise NULL */
    MPI_Request few_handles[QUIPU_MPI_FEW];
    MPI_Status few_statuses[QUIPU_MPI_FEW];
};

/* Runs before the MPI call. Returns the statuses to pass to MPI: the statuses of the program, unless the program
 * ignores them. */
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
