/* Waiting in simulated time: nothing is probed. Moments are readings of quipu_ticks. */
#ifndef QUIPU_MPI_WAIT_SMPI_H
#define QUIPU_MPI_WAIT_SMPI_H

#include "wait.h"

#ifdef SMPI_H
struct quipu_mpi_message;
/* This rank sends or receives now; NULL if waits are not told. To be given to one of the next two. */
struct quipu_mpi_message *quipu_mpi_message(bool receive, int peer, int tag, MPI_Comm comm);
/* A blocking call is over that began at `begin`: until the other sides of its messages were there it waited. */
void quipu_mpi_waited_for(struct quipu_node *node, uint64_t begin, struct quipu_mpi_message *message,
                          struct quipu_mpi_message *other);
/* The message of a request. */
void quipu_mpi_message_posted(MPI_Request handle, struct quipu_mpi_message *message);
/* A persistent request, and its starts. */
void quipu_mpi_message_planned(MPI_Request handle, bool receive, int peer, int tag, MPI_Comm comm);
void quipu_mpi_messages_started(int count, const MPI_Request *handles);
/* All of a call is waiting. */
void quipu_mpi_waited_all(struct quipu_node *node, uint64_t begin);
/* Around a wait or test function. begin: 0 for test functions. */
struct quipu_mpi_pending {
    int count;
    MPI_Request *handles, few[32];
};
void quipu_mpi_before_completion(struct quipu_mpi_pending *all, int count, const MPI_Request *handles);
void quipu_mpi_after_completion(struct quipu_mpi_pending *all, const MPI_Request *handles, struct quipu_node *node,
                                uint64_t begin);
/* Around a collective operation; root: -1 if it has none. */
enum quipu_mpi_awaited { QUIPU_MPI_AWAITS_ALL, QUIPU_MPI_AWAITS_ROOT, QUIPU_MPI_ROOT_AWAITS };
void quipu_mpi_arrive(MPI_Comm comm, int root);
void quipu_mpi_depart(struct quipu_node *node, MPI_Comm comm, enum quipu_mpi_awaited awaited, int root, uint64_t begin);
#endif

#endif
