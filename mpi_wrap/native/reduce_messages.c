/* Messages of the reduction: none is longer than a piece, all but rows go along one binomial tree. */
#include "reduce.h"

#include <stdlib.h>

enum { TAG = QUIPU_TAG, PIECE = QUIPU_PIECE };

void quipu_send_pieces(struct quipu_work *work, const char *bytes, uint64_t size, int to) {
    for (uint64_t at = 0; at < size; at += PIECE)
        PMPI_Send(bytes + at, (int)(size - at < PIECE ? size - at : PIECE), MPI_BYTE, to, TAG, work->comm);
}

void quipu_receive_pieces(struct quipu_work *work, char *bytes, uint64_t size, int from) {
    for (uint64_t at = 0; at < size; at += PIECE) {
        const uint64_t piece = size - at < PIECE ? size - at : PIECE;
        PMPI_Recv(bytes + at, (int)piece, MPI_BYTE, from, TAG, work->comm, MPI_STATUS_IGNORE);
    }
}

void quipu_send_bytes(struct quipu_work *work, const char *bytes, uint64_t size, int to) {
    PMPI_Send(&size, sizeof size, MPI_BYTE, to, TAG, work->comm);
    quipu_send_pieces(work, bytes, size, to);
}

/* All steps use the same binomial tree, in which rank 0 is above all, and the ranks below rank r, itself included, are
 * r to r + quipu_below(r) - 1. The collectives of an MPI may be linear in the number of ranks. */
int quipu_below(const struct quipu_work *work) {
    int step = 1;
    while (step < work->size && !(work->rank & step))
        step <<= 1;
    return work->size - work->rank < step ? work->size - work->rank : step;
}

void quipu_broadcast(struct quipu_work *work, void *bytes, uint64_t size) {
    int step = 1;
    while (step < work->size && !(work->rank & step))
        step <<= 1;
    if (work->rank != 0)
        quipu_receive_pieces(work, bytes, size, work->rank - step);
    for (step >>= 1; step > 0; step >>= 1)
        if (work->rank + step < work->size)
            quipu_send_pieces(work, bytes, size, work->rank + step);
}

void quipu_least(struct quipu_work *work, uint64_t *numbers, size_t count) {
    enum { MOST = 8 };
    uint64_t other[MOST];
    int step = 1;
    for (; step < work->size && !(work->rank & step); step <<= 1) {
        if (work->rank + step >= work->size)
            continue;
        quipu_receive_pieces(work, (char *)other, count * sizeof *other, work->rank + step);
        for (size_t i = 0; i < count; i++)
            numbers[i] = other[i] < numbers[i] ? other[i] : numbers[i];
    }
    if (work->rank != 0)
        quipu_send_pieces(work, (const char *)numbers, count * sizeof *numbers, work->rank - step);
    quipu_broadcast(work, numbers, count * sizeof *numbers);
}

void quipu_gather(struct quipu_work *work, char *all, size_t size) {
    int step = 1;
    for (; step < work->size && !(work->rank & step); step <<= 1) {
        const int from = work->rank + step;
        if (from < work->size) {
            const int ranks = work->size - from < step ? work->size - from : step;
            quipu_receive_pieces(work, all + (size_t)step * size, (uint64_t)ranks * size, from);
        }
    }
    if (work->rank != 0)
        quipu_send_pieces(work, all, (uint64_t)quipu_below(work) * size, work->rank - step);
}

bool quipu_agreed(struct quipu_work *work) {
    uint64_t good = work->good;
    quipu_least(work, &good, 1);
    work->good = good == 1;
    return work->good;
}

char *quipu_receive_bytes(struct quipu_work *work, uint64_t *size, int from) {
    PMPI_Recv(size, sizeof *size, MPI_BYTE, from, TAG, work->comm, MPI_STATUS_IGNORE);
    char *bytes = malloc(*size + 1);
    if (bytes != NULL) {
        quipu_receive_pieces(work, bytes, *size, from);
        return bytes;
    }
    char *scratch = malloc(PIECE);
    for (uint64_t at = 0; at < *size && scratch != NULL; at += PIECE) {
        const uint64_t piece = *size - at < PIECE ? *size - at : PIECE;
        PMPI_Recv(scratch, (int)piece, MPI_BYTE, from, TAG, work->comm, MPI_STATUS_IGNORE);
    }
    free(scratch);
    return NULL;
}
