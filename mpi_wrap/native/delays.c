/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the causes of waiting at collective operations while the program runs. The waiting is charged to (recorded as
 * caused by) the late rank: the call paths in which this rank spent more time since the previous synchronization than
 * the mean of the other ranks.
 *
 * A probe (wait.c) is one reduction. It compares the times of the ranks since the latest probe of the communicator, so
 * it does not compare clocks of different nodes. The reduction also computes the sum over the ranks of the time of each
 * call path. The sums are in two hash tables: the hash of the names of a call path selects one bucket in each table.
 * The sum of a call path is at most the smaller of its two buckets (count-min sketch: Cormode and Muthukrishnan 2005).
 */
#include "delays.h"

#ifndef SMPI_H

#include "group.h"

#include <stddef.h>
#include <string.h>

enum { TABLES = 2, BUCKETS = 256, SCALARS = 10 };
/* The late rank is the busiest rank if it arrives in this last fraction of the time from the first to the last arrival.
 * Otherwise the late rank is the last rank to arrive. */
static const double near = 0.1;

/* Data of the reduction. Times are in nanoseconds. "Elapsed" is the time of a rank from the latest probe of the
 * communicator to its arrival. */
struct exchanged {
    double last, last_rank;             /* largest elapsed time, and its rank */
    double busy, busy_rank, busy_at;    /* largest time outside of MPI; its rank, and the elapsed time of this rank */
    double first, sum;                  /* smallest elapsed time, and sum over the ranks */
    double cost_share;                  /* largest share of the time of a rank that its probes have taken */
    uint64_t least_clocks, most_clocks; /* minimum and maximum of quipu_mpi_clocks */
    float spent[TABLES][BUCKETS];       /* sums over ranks of the time of call paths */
};
_Static_assert(offsetof(struct exchanged, spent) == SCALARS * sizeof(double), "no padding");

static MPI_Op merge_op = MPI_OP_NULL;
static MPI_Datatype exchanged_type = MPI_DATATYPE_NULL;

double quipu_mpi_ticks_per_ns = 0;

static void merge(const struct exchanged *from, struct exchanged *to) {
    if (from->last > to->last || (from->last == to->last && from->last_rank < to->last_rank)) {
        to->last = from->last;
        to->last_rank = from->last_rank;
    }
    if (from->busy > to->busy || (from->busy == to->busy && from->busy_rank < to->busy_rank)) {
        to->busy = from->busy;
        to->busy_rank = from->busy_rank;
        to->busy_at = from->busy_at;
    }
    to->first = from->first < to->first ? from->first : to->first;
    to->cost_share = from->cost_share > to->cost_share ? from->cost_share : to->cost_share;
    to->least_clocks = from->least_clocks < to->least_clocks ? from->least_clocks : to->least_clocks;
    to->most_clocks = from->most_clocks > to->most_clocks ? from->most_clocks : to->most_clocks;
    to->sum += from->sum;
    for (int table = 0; table < TABLES; table++)
        for (int bucket = 0; bucket < BUCKETS; bucket++)
            to->spent[table][bucket] += from->spent[table][bucket];
}

static void merge_all(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++)
        merge((const struct exchanged *)from + i, (struct exchanged *)to + i);
}

bool quipu_mpi_prepare_probes(void) {
    return PMPI_Type_contiguous((int)sizeof(struct exchanged), MPI_BYTE, &exchanged_type) == MPI_SUCCESS &&
           PMPI_Type_commit(&exchanged_type) == MPI_SUCCESS && PMPI_Op_create(merge_all, 1, &merge_op) == MPI_SUCCESS;
}

void quipu_mpi_end_probes(void) {
    if (merge_op != MPI_OP_NULL)
        quipu_mpi_record_awaited();
    if (merge_op != MPI_OP_NULL)
        PMPI_Op_free(&merge_op);
    if (exchanged_type != MPI_DATATYPE_NULL)
        PMPI_Type_free(&exchanged_type);
}

static uint32_t bucket_of(int table, uint64_t path) { return (uint32_t)(path >> (32 * table + 8)) % BUCKETS; }

/* Converts ticks of a call path to nanoseconds, at most `most`. The ticks may be more than the elapsed time, because
 * the runtime may add the earlier time of a called function to its caller. */
static double limited(uint64_t ticks, double most) {
    const double ns = (double)ticks / quipu_mpi_ticks_per_ns;
    return ns < most ? ns : most;
}

/* Charges the waiting of the other ranks to call paths of this rank, which is the late rank. own, all: data of this
 * rank, and result of the reduction. waited: mean time that another rank waited (ns). weight: number of calls that the
 * probe represents. The first pass adds up the excess of all call paths, the second pass charges it. */
static void charge(const struct quipu_mpi_since *since, const struct quipu_node *node, const struct exchanged *own,
                   const struct exchanged *all, const struct quipu_spent *spent, size_t paths, int ranks, double waited,
                   uint64_t weight) {
    const double others = ranks - 1, scale = others * (double)weight * quipu_mpi_ticks_per_ns;
    double whole = 0, charged = 0;
    for (int pass = 0; pass < 2; pass++) {
        const double part = whole > waited ? waited / whole : 1;
        for (size_t i = 0; i < paths; i++) {
            double usual = -1;
            for (int table = 0; table < TABLES; table++) {
                const uint32_t bucket = bucket_of(table, spent[i].path);
                const double mean = (double)(all->spent[table][bucket] - own->spent[table][bucket]) / others;
                usual = usual < 0 || mean < usual ? mean : usual;
            }
            const double excess = limited(spent[i].ticks, own->last) - (usual > 0 ? usual : 0);
            if (excess <= 0)
                continue;
            if (pass == 0) {
                whole += excess;
            } else {
                charged += excess * part;
                quipu_caused(since->interval, node, spent[i].node, (uint64_t)(excess * part * scale));
            }
        }
    }
    if (waited > charged)
        quipu_caused(since->interval, node, NULL, (uint64_t)((waited - charged) * scale));
}

bool quipu_mpi_probe(const struct quipu_mpi_since *since, struct quipu_node *node, MPI_Comm comm, uint64_t weight,
                     double cost_share, struct quipu_mpi_probe *probe) {
    const struct quipu_mpi_group group = quipu_mpi_group_of(comm);
    const struct quipu_spent *spent = NULL;
    const uint64_t came = quipu_ticks();
    const bool knows = since->begun != 0 && came > since->begun;
    const size_t paths = knows ? quipu_interval_spent(since->interval, &spent) : 0;
    const uint64_t clocks = quipu_mpi_clocks();
    const double elapsed = knows ? (double)(came - since->begun) / quipu_mpi_ticks_per_ns : 0;
    struct exchanged own = {.last = elapsed,
                            .last_rank = group.rank,
                            .busy_rank = group.rank,
                            .busy_at = elapsed,
                            .first = elapsed,
                            .sum = elapsed,
                            .cost_share = cost_share,
                            .least_clocks = clocks,
                            .most_clocks = clocks};
    for (size_t i = 0; i < paths; i++) {
        const double ns = limited(spent[i].ticks, elapsed);
        own.busy += ns;
        for (int table = 0; table < TABLES; table++)
            own.spent[table][bucket_of(table, spent[i].path)] += (float)ns;
    }
    struct exchanged all = own;
    probe->arrived = came;
    if (PMPI_Allreduce(MPI_IN_PLACE, &all, 1, exchanged_type, merge_op, comm) != MPI_SUCCESS)
        return false;
    probe->left = quipu_ticks();
    probe->cost_share = all.cost_share;
    probe->last_came = all.first > 0 ? since->begun + (uint64_t)(all.last * quipu_mpi_ticks_per_ns) : 0;
    const double limit = all.last - near * (all.last - all.first);
    const double late = all.busy_at >= limit ? all.busy_rank : all.last_rank;
    const double waited = (all.last * group.size - all.sum) / (group.size - 1);
    if (weight != 0 && all.first > 0 && waited > 0 && late == group.rank)
        charge(since, node, &own, &all, spent, paths, group.size, waited, weight);
    return all.least_clocks == all.most_clocks || quipu_mpi_set_clocks(comm, group.size, weight);
}

void quipu_mpi_begin_since(struct quipu_mpi_since *since, const struct quipu_mpi_probe *probe, uint64_t cost) {
    since->interval = quipu_begin_interval(since->interval);
    if (probe->last_came == 0) {
        *since = (struct quipu_mpi_since){.interval = since->interval, .begun = probe->left};
        return;
    }
    if (probe->last_came + cost > probe->left) { /* the stored begin of the interval was too late */
        since->begun = probe->left - cost;
        since->lags = 0;
        return;
    }
    since->begun = probe->last_came;
    const uint64_t behind = probe->left - probe->last_came, lag = behind > cost ? behind - cost : 0;
    since->lag = since->lags == 0 || lag < since->lag ? lag : since->lag;
    if (++since->lags < QUIPU_MPI_LAGS)
        return;
    /* This rank left all these probes late: the stored begin of its interval was too early. */
    since->begun += since->lag;
    since->lags = 0;
}

#endif
