/* SPDX-License-Identifier: Apache-2.0 */
/* Counts with whom this rank communicates: messages and bytes that it sends, and bytes that it fetches in one-sided
 * operations, for each rank of MPI_COMM_WORLD. */
#ifndef QUIPU_MPI_PARTNERS_H
#define QUIPU_MPI_PARTNERS_H

#include "call.h"

/* Counts a message to a partner: its rank in MPI_COMM_WORLD, or QUIPU_MPI_ELSEWHERE. */
void quipu_mpi_sent_to(int partner, uint64_t bytes);
/* Counts a one-sided operation that fetches bytes from a partner. */
void quipu_mpi_fetched_from(int partner, uint64_t bytes);

/* Writes the attributes "partners:0", "partners:1" … of this rank before the profile is complete. Each attribute is a
 * list of entries "rank:bytes:messages:bytes:operations": bytes and messages sent, then bytes fetched and one-sided
 * operations that fetched them. The entry with the rank * contains partners without a slot and partners outside of
 * MPI_COMM_WORLD. */
void quipu_mpi_report_partners(void);

#endif
