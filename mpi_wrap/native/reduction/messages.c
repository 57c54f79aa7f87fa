/* SPDX-License-Identifier: Apache-2.0 */
/* Sends messages along a binomial tree. */
#include "work.h"

#include <stdlib.h>

enum { TAG = QUIPU_TAG, PIECE = QUIPU_PIECE };

void quipu_send_pieces(const struct quipu_member *member, const char *bytes, uint64_t size, int to) {
    for (uint64_t at = 0; at < size; at += PIECE)
        PMPI_Send(bytes + at, (int)(size - at < PIECE ? size - at : PIECE), MPI_BYTE, to, TAG, member->comm);
}

void quipu_receive_pieces(const struct quipu_member *member, char *bytes, uint64_t size, int from) {
    for (uint64_t at = 0; at < size; at += PIECE) {
        const uint64_t piece = size - at < PIECE ? size - at : PIECE;
        PMPI_Recv(bytes + at, (int)piece, MPI_BYTE, from, TAG, member->comm, MPI_STATUS_IGNORE);
    }
}

void quipu_send_bytes(const struct quipu_member *member, const char *bytes, uint64_t size, int to) {
    PMPI_Send(&size, sizeof size, MPI_BYTE, to, TAG, member->comm);
    quipu_send_pieces(member, bytes, size, to);
}

/* All steps use the same binomial tree. Rank 0 is the root. The subtree of rank r contains the ranks r to r +
 * quipu_below(r) - 1. Collective operations of MPI are not used, because their time may be linear in the number of
 * ranks. */
int quipu_below(const struct quipu_member *member) {
    int step = 1;
    while (step < member->size && !(member->rank & step))
        step <<= 1;
    return member->size - member->rank < step ? member->size - member->rank : step;
}

void quipu_broadcast(const struct quipu_member *member, void *bytes, uint64_t size) {
    int step = 1;
    while (step < member->size && !(member->rank & step))
        step <<= 1;
    if (member->rank != 0)
        quipu_receive_pieces(member, bytes, size, member->rank - step);
    for (step >>= 1; step > 0; step >>= 1)
        if (member->rank + step < member->size)
            quipu_send_pieces(member, bytes, size, member->rank + step);
}

void quipu_least(const struct quipu_member *member, uint64_t *numbers, size_t count) {
    enum { MOST = 8 };
    uint64_t other[MOST];
    int step = 1;
    for (; step < member->size && !(member->rank & step); step <<= 1) {
        if (member->rank + step >= member->size)
            continue;
        quipu_receive_pieces(member, (char *)other, count * sizeof *other, member->rank + step);
        for (size_t i = 0; i < count; i++)
            numbers[i] = other[i] < numbers[i] ? other[i] : numbers[i];
    }
    if (member->rank != 0)
        quipu_send_pieces(member, (const char *)numbers, count * sizeof *numbers, member->rank - step);
    quipu_broadcast(member, numbers, count * sizeof *numbers);
}

void quipu_gather(const struct quipu_member *member, char *all, size_t size) {
    int step = 1;
    for (; step < member->size && !(member->rank & step); step <<= 1) {
        const int from = member->rank + step;
        if (from < member->size) {
            const int ranks = member->size - from < step ? member->size - from : step;
            quipu_receive_pieces(member, all + (size_t)step * size, (uint64_t)ranks * size, from);
        }
    }
    if (member->rank != 0)
        quipu_send_pieces(member, all, (uint64_t)quipu_below(member) * size, member->rank - step);
}

bool quipu_agreed(struct quipu_member *member) {
    uint64_t good = member->good;
    quipu_least(member, &good, 1);
    member->good = good == 1;
    return member->good;
}

char *quipu_receive_bytes(const struct quipu_member *member, uint64_t *size, int from) {
    PMPI_Recv(size, sizeof *size, MPI_BYTE, from, TAG, member->comm, MPI_STATUS_IGNORE);
    char *bytes = malloc(*size + 1);
    if (bytes != NULL) {
        quipu_receive_pieces(member, bytes, *size, from);
        return bytes;
    }
    char *scratch = malloc(PIECE);
    for (uint64_t at = 0; at < *size && scratch != NULL; at += PIECE) {
        const uint64_t piece = *size - at < PIECE ? *size - at : PIECE;
        PMPI_Recv(scratch, (int)piece, MPI_BYTE, from, TAG, member->comm, MPI_STATUS_IGNORE);
    }
    free(scratch);
    return NULL;
}
