/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer_rate.h"

#include <stddef.h>

void quipu_mpi_take_rate(struct quipu_mpi_rates *rates, double rate) {
    const uint64_t number = atomic_fetch_add_explicit(&rates->taken, 1, memory_order_relaxed);
    atomic_store_explicit(&rates->latest[number % QUIPU_MPI_RATES], rate, memory_order_relaxed);
    const size_t count = number < QUIPU_MPI_RATES ? number + 1 : QUIPU_MPI_RATES;
    double sorted[QUIPU_MPI_RATES];
    for (size_t i = 0; i < count; i++) { /* insertion sort */
        const double each = atomic_load_explicit(&rates->latest[i], memory_order_relaxed);
        size_t place = i;
        for (; place > 0 && sorted[place - 1] > each; place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = each;
    }
    atomic_store_explicit(&rates->usual, sorted[(count - 1) / 2], memory_order_relaxed);
}
