/* SPDX-License-Identifier: Apache-2.0 */
/* The rate that waiting is told apart with, learned from transfers of which few were interrupted. */
#include "transfer_rate.h"

int main(void) {
    static struct quipu_mpi_rates rates;
    quipu_mpi_take_rate(&rates, 1); /* of copies in memory */
    quipu_mpi_take_rate(&rates, 25);
    if (quipu_mpi_usual_rate(&rates) != 1)
        return 1;
    for (int i = 0; i < 100; i++) {
        quipu_mpi_take_rate(&rates, i % 4 == 1 ? 25 : 2);
        if (quipu_mpi_usual_rate(&rates) > 2)
            return 2;
    }
    if (quipu_mpi_usual_rate(&rates) != 2)
        return 3;
    for (int i = 0; i < QUIPU_MPI_RATES; i++)
        quipu_mpi_take_rate(&rates, 3);
    return quipu_mpi_usual_rate(&rates) == 3 ? 0 : 4;
}
