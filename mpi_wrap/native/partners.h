/* SPDX-License-Identifier: Apache-2.0 */
/* The partners of this rank: bytes and messages that it sends, and bytes that it gets in one-sided operations, by rank
 * of the world. */
#ifndef QUIPU_MPI_PARTNERS_H
#define QUIPU_MPI_PARTNERS_H

#include "call.h"

/* A message to this partner. */
void quipu_mpi_sent_to(int partner, uint64_t bytes);
/* A one-sided operation that gets bytes from this partner. */
void quipu_mpi_fetched_from(int partner, uint64_t bytes);

/* Writes attributes "partners:N" of this rank before the profile is complete. Each is a list of
 * "rank:bytes:messages:bytes:messages", sent and then fetched. Rank * contains partners without a slot and partners
 * outside of MPI_COMM_WORLD. */
void quipu_mpi_report_partners(void);

#endif
