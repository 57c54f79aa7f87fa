/* SPDX-License-Identifier: Apache-2.0 */
/* How fast messages move, learned from transfers, some of which the machine disturbs. */
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

/* A transfer took so long per byte. */
void quipu_mpi_take_rate(struct quipu_mpi_rates *rates, double rate);

/* The median of the latest, of an even number the lesser of the two in the middle: less than half of them may be of
 * receives that another process interrupted, and the first one may be. 0: none yet. */
static inline double quipu_mpi_usual_rate(const struct quipu_mpi_rates *rates) {
    return atomic_load_explicit(&rates->usual, memory_order_relaxed);
}

#endif
