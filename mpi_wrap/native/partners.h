/* Whom this rank sends to, and from whom it gets in one-sided operations: bytes and messages by rank of MPI_COMM_WORLD.
 */
#ifndef QUIPU_MPI_PARTNERS_H
#define QUIPU_MPI_PARTNERS_H

#include "call.h"

/* No rank of this world: of another one that was spawned or joined. */
enum { QUIPU_MPI_ELSEWHERE = -1 };

/* What a rank of a communicator or window is in MPI_COMM_WORLD; of an inter-communicator in its remote group. */
int quipu_mpi_world_rank_in_comm(MPI_Comm comm, int rank);
int quipu_mpi_world_rank_in_win(MPI_Win win, int rank);
/* Before a communicator or window is freed: its handle may come again and mean others. */
void quipu_mpi_handle_ends(void);

/* A message to this partner. */
void quipu_mpi_sent_to(int partner, uint64_t bytes);
/* A one-sided operation that gets bytes from this partner. */
void quipu_mpi_fetched_from(int partner, uint64_t bytes);

/* Before the profile is complete: what was exchanged becomes attributes "partners:N" of this rank, each a list of
 * "rank:bytes:messages:bytes:messages", sent and then fetched; rank * stands for all that found no room and for those
 * elsewhere. */
void quipu_mpi_report_partners(void);

#endif
