/* SPDX-License-Identifier: Apache-2.0 */
/* Merges statistics over ranks, and writes and reads messages with statistics.
 *
 * Sums of squares: T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing
 * sample variances", 1979. Quantile sketch: a histogram whose bucket numbers are the leading bits of the values. If too
 * many buckets are in use, neighbouring buckets are joined in pairs: I. Epicoco et al., "UDDSketch: accurate tracking
 * of quantiles in data streams", 2020. The result does not depend on the order of merging.
 */
#include "cells.h"

#include <math.h>
#include <string.h>

const uint32_t quipu_cell_size = sizeof(struct quipu_cell);

static uint16_t bucket_of(double value) {
    uint64_t bits;
    if (!(value > 0))
        return 0;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> QUIPU_BUCKET_SHIFT);
}

void quipu_cell_of_rank(struct quipu_cell *cell, double value, bool present, uint32_t rank) {
    cell->present = present;
    cell->known = !isnan(value);
    cell->sum = cell->min = cell->max = cell->known ? value : 0;
    cell->m2 = 0;
    cell->min_rank = cell->max_rank = rank;
    cell->level = 0;
    cell->used = (uint8_t)cell->known;
    cell->bucket[0] = cell->known ? bucket_of(value) : 0;
    cell->count[0] = 1;
}

/* Merges the buckets of two sketches at `level`, which is at least the level of both. Returns the number of buckets.
 * bucket, count: output arrays with room for the buckets of both sketches. */
static uint32_t joined(const struct quipu_cell *a, const struct quipu_cell *b, uint8_t level, uint16_t *bucket,
                       uint32_t *count) {
    uint32_t used = 0, i = 0, k = 0;
    while (i < a->used || k < b->used) {
        const uint32_t from_a = i < a->used ? (uint32_t)a->bucket[i] >> (level - a->level) : UINT32_MAX;
        const uint32_t from_b = k < b->used ? (uint32_t)b->bucket[k] >> (level - b->level) : UINT32_MAX;
        const uint32_t next = from_a <= from_b ? from_a : from_b;
        const uint32_t more = from_a <= from_b ? a->count[i++] : b->count[k++];
        if (used > 0 && bucket[used - 1] == next) {
            count[used - 1] += more;
        } else {
            bucket[used] = (uint16_t)next;
            count[used++] = more;
        }
    }
    return used;
}

static void merge_sketches(struct quipu_cell *into, const struct quipu_cell *from) {
    /* One rank, or several equal values: often the bucket exists already. */
    if (from->used == 1 && from->level <= into->level) {
        const uint32_t wanted = (uint32_t)from->bucket[0] >> (into->level - from->level);
        uint32_t i = 0;
        while (i < into->used && into->bucket[i] < wanted)
            i++;
        if (i < into->used && into->bucket[i] == wanted) {
            into->count[i] += from->count[0];
            return;
        }
    }
    uint16_t bucket[2 * QUIPU_BUCKETS];
    uint32_t count[2 * QUIPU_BUCKETS];
    uint8_t level = into->level > from->level ? into->level : from->level;
    uint32_t used = joined(into, from, level, bucket, count);
    while (used > QUIPU_BUCKETS) {
        level++;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < used; i++) {
            const uint16_t half = bucket[i] / 2;
            if (kept > 0 && bucket[kept - 1] == half) {
                count[kept - 1] += count[i];
            } else {
                bucket[kept] = half;
                count[kept++] = count[i];
            }
        }
        used = kept;
    }
    memcpy(into->bucket, bucket, used * sizeof *bucket);
    memcpy(into->count, count, used * sizeof *count);
    into->level = level;
    into->used = (uint8_t)used;
}

static void merge(struct quipu_cell *into, const struct quipu_cell *from) {
    into->present += from->present;
    if (from->known == 0)
        return;
    if (into->known == 0) {
        const uint32_t present = into->present;
        *into = *from;
        into->present = present;
        return;
    }
    const double a = into->known, b = from->known;
    const double difference = from->sum / b - into->sum / a;
    into->m2 += from->m2 + difference * difference * (a * b / (a + b));
    into->sum += from->sum;
    into->known += from->known;
    if (from->min < into->min || (from->min == into->min && from->min_rank < into->min_rank)) {
        into->min = from->min;
        into->min_rank = from->min_rank;
    }
    if (from->max > into->max || (from->max == into->max && from->max_rank < into->max_rank)) {
        into->max = from->max;
        into->max_rank = from->max_rank;
    }
    if (into->min == into->max)
        into->m2 = 0; /* all values are equal: no rounding error */
    merge_sketches(into, from);
}

void quipu_cells_merge(struct quipu_cell *into, const struct quipu_cell *from, uint64_t count) {
    for (uint64_t i = 0; i < count; i++)
        merge(&into[i], &from[i]);
}

bool quipu_cells_add_rows(struct quipu_cell *cells, uint64_t stride, uint64_t paths, const int64_t *ranks,
                          uint64_t rank_count, uint64_t rows, const int64_t *path, const int64_t *rank,
                          const double *value, bool largest) {
    struct quipu_cell one = {0};
    uint64_t at = 0;
    for (uint64_t i = 0; i < paths; i++)
        for (uint64_t k = 0; k < rank_count; k++) {
            const uint64_t begin = at;
            double whole = 0;
            for (; at < rows && path[at] == (int64_t)i && rank[at] == ranks[k]; at++)
                whole = !largest ? whole + value[at] : value[at] > whole || isnan(value[at]) ? value[at] : whole;
            quipu_cell_of_rank(&one, whole, at > begin, (uint32_t)ranks[k]);
            merge(&cells[i * stride], &one);
        }
    return at == rows;
}

static char *put(char *to, const void *from, size_t size) {
    memcpy(to, from, size);
    return to + size;
}

/* Writes a cell into a message. If all ranks have the same value, the message contains only this value. This is usual
 * for effort, and always so for the cell of one rank. */
static char *pack(char *to, const struct quipu_cell *cell) {
    const bool same = cell->known == 0 || (cell->min == cell->max && cell->m2 == 0 && cell->min_rank == cell->max_rank);
    *to++ = (char)same;
    to = put(to, &cell->present, 4);
    to = put(to, &cell->known, 4);
    to = put(to, &cell->sum, 8);
    to = put(to, &cell->min, 8);
    to = put(to, &cell->min_rank, 4);
    if (same)
        return to;
    to = put(to, &cell->m2, 8);
    to = put(to, &cell->max, 8);
    to = put(to, &cell->max_rank, 4);
    *to++ = (char)cell->level;
    *to++ = (char)cell->used;
    to = put(to, cell->bucket, 2 * (size_t)cell->used);
    return put(to, cell->count, 4 * (size_t)cell->used);
}

uint64_t quipu_cells_pack(char *message, const struct quipu_cell *cells, uint64_t count) {
    char *to = message;
    for (uint64_t i = 0; i < count; i++)
        to = pack(to, &cells[i]);
    return (uint64_t)(to - message);
}

static const char *take(const char *from, void *to, size_t size) {
    memcpy(to, from, size);
    return from + size;
}

/* Reads a cell from a message. Returns the end of the cell in the message; NULL if the message is too short or damaged.
 */
static const char *unpack(const char *from, const char *end, struct quipu_cell *cell) {
    enum { SAME = 29, HEAD = 51 }; /* bytes of a cell with equal values; bytes of another cell before its buckets */
    if (end - from < SAME)
        return NULL;
    const bool same = *from++ != 0;
    from = take(from, &cell->present, 4);
    from = take(from, &cell->known, 4);
    from = take(from, &cell->sum, 8);
    from = take(from, &cell->min, 8);
    from = take(from, &cell->min_rank, 4);
    if (same) {
        cell->m2 = 0;
        cell->max = cell->min;
        cell->max_rank = cell->min_rank;
        cell->level = 0;
        cell->used = cell->known > 0;
        cell->bucket[0] = bucket_of(cell->min);
        cell->count[0] = cell->known;
        return from;
    }
    if (end - from < HEAD - SAME)
        return NULL;
    from = take(from, &cell->m2, 8);
    from = take(from, &cell->max, 8);
    from = take(from, &cell->max_rank, 4);
    cell->level = (uint8_t)*from++;
    cell->used = (uint8_t)*from++;
    if (cell->used > QUIPU_BUCKETS || cell->level > QUIPU_LEVELS || end - from < 6 * (ptrdiff_t)cell->used)
        return NULL;
    from = take(from, cell->bucket, 2 * (size_t)cell->used);
    for (int i = 1; i < cell->used; i++)
        if (cell->bucket[i] <= cell->bucket[i - 1])
            return NULL;
    return take(from, cell->count, 4 * (size_t)cell->used);
}

bool quipu_cells_merge_packed(struct quipu_cell *into, uint64_t count, const char *message, uint64_t size) {
    const char *from = message, *end = message + size;
    struct quipu_cell other = {0};
    for (uint64_t i = 0; i < count && from != NULL; i++) {
        from = unpack(from, end, &other);
        if (from != NULL)
            merge(&into[i], &other);
    }
    return from == end;
}
