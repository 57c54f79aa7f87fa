/* SPDX-License-Identifier: Apache-2.0 */
/* Delays under SMPI: all ranks are in this process, so that each rank that waits is compared with the late one,
 * exactly.
 *
 * Ranks are compared since the latest operation after which all went on at the same moment. An operation with a root
 * synchronizes few ranks: what the late rank was waited for there is not waited for again.
 */
#include "delays.h"

#ifdef SMPI_H

#include <stdlib.h>
#include <string.h>

/* A rank that comes nearly last, by this part of the range of arrivals, and is the busiest is the late one. */
static const double near = 0.1;

static int by_path(const void *one, const void *other) {
    const uint64_t a = ((const struct quipu_spent *)one)->path, b = ((const struct quipu_spent *)other)->path;
    return a < b ? -1 : a > b;
}

void quipu_mpi_note_arrival(struct quipu_mpi_arrival *arrival, struct quipu_interval *interval, uint64_t at) {
    arrival->at = at;
    arrival->operation = quipu_here();
    if (interval == NULL)
        return;
    const struct quipu_spent *spent = NULL;
    const size_t paths = quipu_interval_spent(interval, &spent);
    arrival->interval = interval;
    arrival->spent = paths == 0 ? NULL : malloc(paths * sizeof *spent);
    if (arrival->spent == NULL)
        return;
    memcpy(arrival->spent, spent, paths * sizeof *spent);
    arrival->paths = paths;
    qsort(arrival->spent, paths, sizeof *spent, by_path);
}

static uint64_t busy(const struct quipu_mpi_arrival *arrival) {
    uint64_t sum = 0;
    for (size_t i = 0; i < arrival->paths; i++)
        sum += arrival->spent[i].ticks;
    return sum;
}

static int latest(const struct quipu_mpi_arrival *arrivals, int ranks) {
    uint64_t first = UINT64_MAX, last = 0, most = 0;
    for (int rank = 0; rank < ranks; rank++) {
        first = arrivals[rank].at < first ? arrivals[rank].at : first;
        last = arrivals[rank].at > last ? arrivals[rank].at : last;
    }
    int found = -1;
    for (int rank = 0; rank < ranks; rank++) {
        if ((double)(last - arrivals[rank].at) > near * (double)(last - first))
            continue;
        const uint64_t own = busy(&arrivals[rank]);
        if (found < 0 || own > most) {
            found = rank;
            most = own;
        }
    }
    return found;
}

/* Adds to `charges`, one for each call path of the late rank, what a rank waited for; returns the rest. */
static double charge(const struct quipu_mpi_arrival *late, const struct quipu_mpi_arrival *waiting, double waited,
                     double *excess, double *charges, double *most) {
    double whole = 0;
    size_t at = 0;
    for (size_t i = 0; i < late->paths; i++) {
        while (at < waiting->paths && waiting->spent[at].path < late->spent[i].path)
            at++;
        const bool same = at < waiting->paths && waiting->spent[at].path == late->spent[i].path;
        const double usual = same ? (double)waiting->spent[at].ticks : 0;
        excess[i] = (double)late->spent[i].ticks > usual ? (double)late->spent[i].ticks - usual : 0;
        whole += excess[i];
    }
    const double explained = whole < waited ? whole : waited;
    for (size_t i = 0; whole > 0 && i < late->paths; i++) {
        const double own = excess[i] * explained / whole;
        charges[i] += own;
        most[i] = own > most[i] ? own : most[i];
    }
    return waited - explained;
}

static void account(const struct quipu_mpi_arrival *arrivals, int ranks, enum quipu_mpi_awaited awaited, int root,
                    int late_rank, bool synchronized) {
    const struct quipu_mpi_arrival *late = &arrivals[late_rank];
    double *of_paths = calloc(3 * late->paths + 1, sizeof *of_paths);
    if (of_paths == NULL || late->interval == NULL) {
        free(of_paths);
        return;
    }
    double *excess = of_paths, *charges = excess + late->paths, *most = charges + late->paths;
    uint64_t until = 0;
    for (int rank = 0; rank < ranks; rank++)
        until = arrivals[rank].at > until ? arrivals[rank].at : until;
    if (awaited == QUIPU_MPI_AWAITS_ROOT)
        until = late->at;
    double rest = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const struct quipu_mpi_arrival *waiting = &arrivals[rank];
        if (waiting->at >= until || (awaited == QUIPU_MPI_ROOT_AWAITS && rank != root))
            continue;
        const double waited = (double)(until - waiting->at);
        rest += rank == late_rank || waiting->interval == NULL ? waited
                                                               : charge(late, waiting, waited, excess, charges, most);
    }
    for (size_t i = 0; i < late->paths; i++) {
        quipu_caused(late->interval, late->operation, late->spent[i].node, (uint64_t)charges[i]);
        if (!synchronized)
            quipu_charge_once(late->interval, late->spent[i].place, (uint64_t)most[i]);
    }
    quipu_caused(late->interval, late->operation, NULL, (uint64_t)rest);
    free(of_paths);
}

bool quipu_mpi_account(struct quipu_mpi_arrival *arrivals, int ranks, enum quipu_mpi_awaited awaited, int root) {
    bool synchronized = awaited == QUIPU_MPI_AWAITS_ALL;
    int late = latest(arrivals, ranks);
    if (awaited == QUIPU_MPI_AWAITS_ROOT) {
        late = root;
        synchronized = root >= 0;
        for (int rank = 0; synchronized && rank < ranks; rank++)
            synchronized = arrivals[rank].at <= arrivals[root].at;
    }
    if (late >= 0)
        account(arrivals, ranks, awaited, root, late, synchronized);
    for (int rank = 0; rank < ranks; rank++) {
        free(arrivals[rank].spent);
        arrivals[rank].spent = NULL;
        arrivals[rank].paths = 0;
    }
    return synchronized;
}

#endif
