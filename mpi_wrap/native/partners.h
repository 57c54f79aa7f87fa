/* SPDX-License-Identifier: Apache-2.0 */
/* Whom this rank sends to, and from whom it gets in one-sided operations: bytes and messages by rank of the world. */
#ifndef QUIPU_MPI_PARTNERS_H
#define QUIPU_MPI_PARTNERS_H

#include "call.h"

/* A message to this partner. */
void quipu_mpi_sent_to(int partner, uint64_t bytes);
/* A one-sided operation that gets bytes from this partner. */
void quipu_mpi_fetched_from(int partner, uint64_t bytes);

/* Before the profile is complete: what was exchanged becomes attributes "partners:N" of this rank, each a list of
 * "rank:bytes:messages:bytes:messages", sent and then fetched; rank * stands for all that found no room and for those
 * elsewhere. */
void quipu_mpi_report_partners(void);

#endif
