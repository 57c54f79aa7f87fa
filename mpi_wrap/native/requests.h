/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the requests that are counted later, and counts them when they start or complete. */
#ifndef QUIPU_MPI_REQUESTS_H
#define QUIPU_MPI_REQUESTS_H

#include "call.h"

/* Whether MPI_Isendrecv sets no status. In MPICH and derived MPIs its status contains values of the previous request.
 */
#if defined(OPEN_MPI) || defined(SMPI_H)
#define QUIPU_MPI_LACKS_STATUS false
#else
#define QUIPU_MPI_LACKS_STATUS true
#endif

/* A request that is counted later: a receive, whose bytes are in the status, or a persistent request. */
struct quipu_mpi_request {
    struct quipu_node *node;             /* the call path that posted or started the request, and gets the counts */
    uint64_t sent, received;             /* bytes of a persistent request, or bytes that no status contains */
    bool message_sent, message_received; /* whether the request counts a message in this direction */
    bool from_status;                    /* the status contains the received bytes */
    bool persistent;
    bool active;      /* of a persistent request: it is started and not complete */
    int processes;    /* number of processes of the communicator */
    bool has_partner; /* of a persistent request: it sends messages to one rank */
    int partner;      /* number of this rank in MPI_COMM_WORLD */
};

/* Stores a request that MPI has just returned. */
void quipu_mpi_posted(MPI_Request handle, struct quipu_mpi_request request);
/* Counts the start of a persistent request by the call path `node`. */
void quipu_mpi_started(MPI_Request handle, struct quipu_node *node);
/* Returns the number of requests stored so far. It serves as a moment of time: a request that is stored later has a
 * larger number, even if MPI gives it a handle that another thread is just completing. */
uint64_t quipu_mpi_request_time(void);
/* Returns whether any request is stored. */
bool quipu_mpi_any_request(void);
/* Returns whether a receive with this handle is stored. A persistent receive must be active. */
bool quipu_mpi_is_receive(MPI_Request handle);
/* Counts a complete request that was stored no later than `time`, and removes it unless it is persistent. Returns the
 * received bytes; 0 if the request is not stored or was cancelled. */
uint64_t quipu_mpi_settle(MPI_Request handle, uint64_t time, const MPI_Status *status);
/* Removes a request without counting it. A persistent request becomes inactive instead, unless persistent_too. */
void quipu_mpi_forget(MPI_Request handle, uint64_t time, bool persistent_too);

enum { QUIPU_MPI_FEW = 32 }; /* number of requests for which a completion allocates no memory */

/* Copies of the requests and statuses of a wait or test call. The handles are copied, because MPI overwrites them. The
 * statuses are necessary here even if the program ignores them. */
struct quipu_mpi_completion {
    int count;            /* number of requests; 0: nothing to count */
    int base;             /* index that MPI gives to the first request: 0 in C, 1 in Fortran */
    uint64_t time;        /* quipu_mpi_request_time before the call */
    uint64_t bytes;       /* bytes that the completed requests have received */
    MPI_Request *handles; /* handles before the call */
    MPI_Status *statuses;
    void *memory; /* handles and statuses of more than QUIPU_MPI_FEW requests; otherwise NULL */
    MPI_Request few_handles[QUIPU_MPI_FEW];
    MPI_Status few_statuses[QUIPU_MPI_FEW];
};

/* Runs before a wait or test function. Returns the statuses to pass to MPI: the statuses of the program, or statuses of
 * `completion` if the program ignores them. status_count: number of statuses of the function. */
MPI_Status *quipu_mpi_await(struct quipu_mpi_completion *completion, int count, const MPI_Request *requests,
                            MPI_Status *statuses, int status_count);
/* Run after a wait or test function, and count the requests that it has completed. result: error code. requests:
 * handles after the call; NULL in Fortran. index: NULL if there is only one request. flag: NULL for wait functions. */
void quipu_mpi_completed_one(struct quipu_mpi_completion *completion, int result, const MPI_Request *requests,
                             const int *index, const int *flag);
void quipu_mpi_completed_some(struct quipu_mpi_completion *completion, int result, const int *count,
                              const int *indices);
void quipu_mpi_completed_all(struct quipu_mpi_completion *completion, int result, const int *flag);
/* Run before and after MPI_Request_free. A receive is still counted if it is already complete. */
void quipu_mpi_before_free(struct quipu_mpi_completion *completion, const MPI_Request *request);
void quipu_mpi_after_free(struct quipu_mpi_completion *completion, int result);

#endif
