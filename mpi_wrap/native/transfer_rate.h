/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the transfer rate of messages from measured transfers. The machine may have disturbed some of them. */
#ifndef QUIPU_MPI_TRANSFER_RATE_H
#define QUIPU_MPI_TRANSFER_RATE_H

#include <stdatomic.h>
#include <stdint.h>

enum { QUIPU_MPI_RATES = 9 };

/* The latest rates (time per byte), from several threads. */
struct quipu_mpi_rates {
    _Atomic uint64_t taken;
    _Atomic double latest[QUIPU_MPI_RATES], usual;
};

/* Adds the rate of a transfer (time per byte). */
void quipu_mpi_take_rate(struct quipu_mpi_rates *rates, double rate);

/* Returns the median of the latest rates (of an even number, the smaller middle value); 0: none yet. It tolerates that
 * less than half of the receives, or the first one, were interrupted by another process. */
static inline double quipu_mpi_usual_rate(const struct quipu_mpi_rates *rates) {
    return atomic_load_explicit(&rates->usual, memory_order_relaxed);
}

#endif
