/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the transfer time per byte of messages from measured transfers, of which the machine may have disturbed
 * some. A rate is here a time per byte, in ticks of quipu_ticks. */
#ifndef QUIPU_MPI_TRANSFER_RATE_H
#define QUIPU_MPI_TRANSFER_RATE_H

#include <stdatomic.h>
#include <stdint.h>

enum { QUIPU_MPI_RATES = 9 };

/* The latest rates. Several threads may add rates at the same time. */
struct quipu_mpi_rates {
    _Atomic uint64_t taken; /* number of all rates so far */
    /* latest: the last QUIPU_MPI_RATES rates. usual: their median. */
    _Atomic double latest[QUIPU_MPI_RATES], usual;
};

/* Adds the rate of a transfer. */
void quipu_mpi_take_rate(struct quipu_mpi_rates *rates, double rate);

/* Returns the median of the latest rates; of an even number, the smaller middle value. 0: there is no rate yet. The
 * result is good if fewer than half of the transfers were interrupted by another process. Of two rates the smaller one
 * counts, so the first measured transfer may have been interrupted, too. */
static inline double quipu_mpi_usual_rate(const struct quipu_mpi_rates *rates) {
    return atomic_load_explicit(&rates->usual, memory_order_relaxed);
}

#endif
