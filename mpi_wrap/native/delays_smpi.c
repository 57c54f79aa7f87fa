/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the causes of waiting under SMPI, and charges the waiting to them (records them). All ranks are in this
 * process, so each waiting rank is compared exactly with the late rank, at collective operations and at messages.
 *
 * The two ranks are compared over the interval since the latest operation after which all ranks continued at the same
 * moment. A rank is late because of its call paths, or because it waited itself (Boehme, Geimer, Arnold, Voigtlaender,
 * Wolf: Identifying the root causes of wait states in large-scale parallel applications, 2016). Each rank therefore
 * stores the causes of its waiting in this interval. If another rank waits for it, these are causes of this waiting,
 * too. The comparison leaves out the time that the two ranks have waited for each other earlier in the interval, so
 * that no delay is charged twice.
 */
#include "delays.h"

#ifdef SMPI_H

#include <stdlib.h>
#include <string.h>

/* The late rank is the busiest of the ranks that arrive in this last fraction of the time from the first to the last
 * arrival. */
static const double near = 0.1;

enum { MOST_CAUSES = 64 }; /* largest number of causes that a rank stores; it drops the smallest ones */

/* The waiting of a rank in the current interval. */
struct quipu_mpi_waits {
    double whole; /* ns; a part of it may have no cause */
    size_t count; /* number of causes */
    struct waited {
        struct quipu_mpi_rank *late;    /* the rank that this rank waited for, directly or indirectly */
        const struct quipu_node *cause; /* call path of the late rank */
        double ns;
    } of[MOST_CAUSES];
};

/* Hash table of the call paths of operations. For each call path it contains the first node that was charged with
 * waiting. Later charges use this node for all ranks. */
struct operations {
    size_t room, used;
    struct known_operation {
        uint64_t path;
        const struct quipu_node *node;
    } *slots;
};
static struct operations operations;

static uint64_t path_of(const struct quipu_node *node) {
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; node != NULL && node->region != 0; node = node->up)
        hash = (hash ^ node->region) * UINT64_C(1099511628211);
    return hash | 1;
}

static struct known_operation *slot_of(const struct operations *all, uint64_t path) {
    for (uint64_t at = path >> 8;; at++) {
        struct known_operation *slot = &all->slots[at & (all->room - 1)];
        if (slot->node == NULL || slot->path == path)
            return slot;
    }
}

/* Returns the node that stands for the call path of an operation on all ranks; the argument if there is no memory. */
static const struct quipu_node *known(const struct quipu_node *operation) {
    if (operation == NULL)
        return NULL;
    if (2 * operations.used >= operations.room) {
        const size_t room = operations.room == 0 ? 256 : 2 * operations.room;
        struct operations larger = {room, operations.used, calloc(room, sizeof *larger.slots)};
        if (larger.slots == NULL)
            return operation;
        for (size_t i = 0; i < operations.room; i++)
            if (operations.slots[i].node != NULL)
                *slot_of(&larger, operations.slots[i].path) = operations.slots[i];
        free(operations.slots);
        operations = larger;
    }
    const uint64_t path = path_of(operation);
    struct known_operation *slot = slot_of(&operations, path);
    if (slot->node == NULL) {
        *slot = (struct known_operation){path, operation};
        operations.used++;
    }
    return slot->node;
}

static int by_path(const void *one, const void *other) {
    const uint64_t a = ((const struct quipu_spent *)one)->path, b = ((const struct quipu_spent *)other)->path;
    return a < b ? -1 : a > b;
}

void quipu_mpi_note_arrival(struct quipu_mpi_arrival *arrival) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    arrival->operation = quipu_here();
    if (rank == NULL || rank->since == NULL)
        return;
    const struct quipu_spent *spent = NULL;
    const size_t paths = quipu_interval_spent(rank->since, &spent);
    arrival->rank = rank;
    arrival->waited = rank->waits == NULL ? 0 : rank->waits->whole;
    arrival->spent = paths == 0 ? NULL : malloc(paths * sizeof *spent);
    if (arrival->spent == NULL)
        return;
    memcpy(arrival->spent, spent, paths * sizeof *spent);
    arrival->paths = paths;
    qsort(arrival->spent, paths, sizeof *spent, by_path);
}

void quipu_mpi_forget_arrival(struct quipu_mpi_arrival *arrival) {
    free(arrival->spent);
    *arrival = (struct quipu_mpi_arrival){0};
}

static struct quipu_mpi_waits *waits_of(struct quipu_mpi_rank *rank) {
    if (rank->waits == NULL)
        rank->waits = calloc(1, sizeof *rank->waits);
    return rank->waits;
}

static void add_cause(struct quipu_mpi_waits *waits, struct quipu_mpi_rank *late, const struct quipu_node *cause,
                      double ns) {
    size_t least = 0;
    for (size_t i = 0; i < waits->count; i++) {
        if (waits->of[i].late == late && waits->of[i].cause == cause) {
            waits->of[i].ns += ns;
            return;
        }
        least = waits->of[i].ns < waits->of[least].ns ? i : least;
    }
    if (waits->count < MOST_CAUSES)
        waits->of[waits->count++] = (struct waited){late, cause, ns};
    else if (ns > waits->of[least].ns)
        waits->of[least] = (struct waited){late, cause, ns};
}

void quipu_mpi_waited_unaccounted(uint64_t ns) {
    struct quipu_mpi_rank *rank = quipu_mpi_running();
    if (rank != NULL && waits_of(rank) != NULL)
        rank->waits->whole += (double)ns;
}

void quipu_mpi_synchronized(struct quipu_mpi_rank *running) {
    running->since = quipu_begin_interval(running->since);
    if (running->waits != NULL)
        running->waits->whole = 0, running->waits->count = 0;
}

static uint64_t busy(const struct quipu_mpi_arrival *arrival) {
    uint64_t sum = 0;
    for (size_t i = 0; i < arrival->paths; i++)
        sum += arrival->spent[i].ticks;
    return sum;
}

/* Returns the late rank. */
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

/* The time that all ranks waited for the late rank in an operation, by cause. Times are in ns. */
struct charges {
    const struct quipu_mpi_arrival *late;
    /* For each call path of the late rank. excess: how much longer it took than on the compared rank. of_paths: waiting
     * that is charged to it. */
    double *excess, *of_paths;
    double of_waits[MOST_CAUSES]; /* waiting because of each cause for which the late rank has waited itself */
    double rest;                  /* waiting without a cause */
};

static bool begin_charges(struct charges *charges, const struct quipu_mpi_arrival *late) {
    *charges = (struct charges){.late = late, .excess = calloc(2 * late->paths + 1, sizeof(double))};
    charges->of_paths = charges->excess == NULL ? NULL : charges->excess + late->paths;
    return charges->excess != NULL;
}

/* Computes how much longer the late rank took in each call path than the waiting rank (excess; less than 0: shorter).
 * Returns how much longer the late rank has waited than the waiting rank (ns, at least 0). */
static double compare(struct charges *charges, const struct quipu_mpi_arrival *waiting) {
    const struct quipu_mpi_arrival *late = charges->late;
    size_t at = 0;
    for (size_t i = 0; i < late->paths; i++) {
        while (at < waiting->paths && waiting->spent[at].path < late->spent[i].path)
            at++;
        const bool same = at < waiting->paths && waiting->spent[at].path == late->spent[i].path;
        charges->excess[i] = (double)late->spent[i].ticks - (same ? (double)waiting->spent[at].ticks : 0);
    }
    double longer = late->waited - waiting->waited;
    const struct quipu_mpi_waits *own = waiting->rank->waits, *others = late->rank->waits;
    for (size_t e = 0; own != NULL && e < own->count; e++) {
        if (own->of[e].late != late->rank)
            continue;
        longer += own->of[e].ns;
        for (size_t i = 0; i < late->paths; i++)
            if (late->spent[i].node == own->of[e].cause)
                charges->excess[i] -= own->of[e].ns;
    }
    for (size_t e = 0; others != NULL && e < others->count; e++)
        if (others->of[e].late == waiting->rank)
            longer -= others->of[e].ns;
    return longer > 0 ? longer : 0;
}

/* Charges the time that a rank waited for the late rank (`waited`, ns). remember: also store the causes of this waiting
 * in the waiting rank, because the waiting rank may be late at a later operation for these causes. */
static void charge(struct charges *charges, const struct quipu_mpi_arrival *waiting, double waited, bool remember) {
    const struct quipu_mpi_arrival *late = charges->late;
    struct quipu_mpi_waits *own = remember ? waits_of(waiting->rank) : NULL;
    const struct quipu_mpi_waits *others = late->rank->waits;
    const double longer = compare(charges, waiting);
    double whole = longer, known_waits = 0;
    for (size_t i = 0; i < late->paths; i++)
        whole += charges->excess[i] = charges->excess[i] > 0 ? charges->excess[i] : 0;
    const double part = whole > waited ? waited / whole : 1;
    for (size_t i = 0; i < late->paths; i++) {
        charges->of_paths[i] += part * charges->excess[i];
        if (own != NULL && charges->excess[i] > 0)
            add_cause(own, late->rank, late->spent[i].node, part * charges->excess[i]);
    }
    double from_others = others == NULL ? 0 : late->waited;
    for (size_t e = 0; others != NULL && e < others->count; e++)
        from_others -= others->of[e].late == waiting->rank ? others->of[e].ns : 0;
    for (size_t e = 0; others != NULL && longer > 0 && from_others > 0 && e < others->count; e++) {
        const struct waited *indirect = &others->of[e];
        if (indirect->late == waiting->rank)
            continue;
        double ns = part * longer * indirect->ns / from_others;
        known_waits += ns;
        charges->of_waits[e] += ns;
        if (own != NULL)
            add_cause(own, indirect->late, indirect->cause, ns);
    }
    charges->rest += waited - part * (whole - longer) - known_waits;
    if (own != NULL)
        own->whole += waited;
}

static void end_charges(struct charges *charges, const struct quipu_node *operation) {
    const struct quipu_mpi_arrival *late = charges->late;
    const struct quipu_mpi_waits *others = late->rank->waits;
    operation = known(operation);
    for (size_t i = 0; i < late->paths; i++)
        quipu_caused(late->rank->since, operation, late->spent[i].node, (uint64_t)charges->of_paths[i]);
    for (size_t e = 0; others != NULL && e < others->count; e++)
        quipu_caused(others->of[e].late->since, operation, others->of[e].cause, (uint64_t)charges->of_waits[e]);
    quipu_caused(late->rank->since, operation, NULL, charges->rest > 0 ? (uint64_t)charges->rest : 0);
    free(charges->excess);
}

static void account(const struct quipu_mpi_arrival *arrivals, int ranks, enum quipu_mpi_awaited awaited, int root,
                    int late_rank, bool remember) {
    const struct quipu_mpi_arrival *late = &arrivals[late_rank];
    struct charges charges;
    if (late->rank == NULL || !begin_charges(&charges, late))
        return;
    uint64_t until = 0;
    for (int rank = 0; rank < ranks; rank++)
        until = arrivals[rank].at > until ? arrivals[rank].at : until;
    if (awaited == QUIPU_MPI_AWAITS_ROOT)
        until = late->at;
    for (int rank = 0; rank < ranks; rank++) {
        const struct quipu_mpi_arrival *waiting = &arrivals[rank];
        if (waiting->at >= until || (awaited == QUIPU_MPI_ROOT_AWAITS && rank != root))
            continue;
        const double waited = (double)(until - waiting->at);
        if (rank == late_rank || waiting->rank == NULL)
            charges.rest += waited;
        else
            charge(&charges, waiting, waited, remember);
    }
    end_charges(&charges, late->operation);
}

bool quipu_mpi_account(struct quipu_mpi_arrival *arrivals, int ranks, bool all, enum quipu_mpi_awaited awaited,
                       int root) {
    bool synchronized = awaited == QUIPU_MPI_AWAITS_ALL;
    int late = latest(arrivals, ranks);
    if (awaited == QUIPU_MPI_AWAITS_ROOT) {
        late = root;
        synchronized = root >= 0;
        for (int rank = 0; synchronized && rank < ranks; rank++)
            synchronized = arrivals[rank].at <= arrivals[root].at;
    }
    if (late >= 0)
        account(arrivals, ranks, awaited, root, late, !all || !synchronized);
    for (int rank = 0; rank < ranks; rank++)
        quipu_mpi_forget_arrival(&arrivals[rank]);
    return all && synchronized;
}

void quipu_mpi_account_message(const struct quipu_mpi_arrival *late, const struct quipu_mpi_arrival *waiting) {
    struct charges charges;
    if (late->rank == NULL || waiting->rank == NULL || late->at <= waiting->at || !begin_charges(&charges, late))
        return;
    charge(&charges, waiting, (double)(late->at - waiting->at), true);
    end_charges(&charges, waiting->operation);
}

#endif
