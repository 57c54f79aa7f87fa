/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the values and the measurement overhead of each rank to rank 0, which writes them into the file. */
#include "work.h"

#include "quipu.h"

#include <stdlib.h>
#include <string.h>

enum { TAG = QUIPU_TAG, PIECE = QUIPU_PIECE };

/* Returns whether a region record (name \x1f display \x1f file \x1f line \x1f kind \x1f hook) is an MPI function. */
static bool is_mpi(const char *text) {
    for (int field = 0; field < 4 && text != NULL; field++)
        if ((text = strchr(text, '\x1f')) != NULL)
            text++;
    return text != NULL && text[0] == '0' + QUIPU_MPI && text[1] == '\x1f';
}

static bool is_mpi_node(const struct quipu_work *work, uint32_t node) {
    const uint32_t region = work->mine->region[node];
    return region != UINT32_MAX && is_mpi(work->mine->texts[region]);
}

double quipu_overhead_of_node(const struct quipu_work *work, uint32_t node) {
    const struct quipu_costs *costs = &work->mine->costs;
    const uint64_t *events = work->mine->events + (size_t)node * QUIPU_EVENTS;
    /* A call of MPI that records wait_time reads the clock once more. */
    const double each = costs->pair + (work->waits && is_mpi_node(work, node) ? costs->clock : 0);
    return (double)events[QUIPU_PAIRS] * each + (double)events[QUIPU_QUIET_VISITS] * costs->quiet +
           (double)events[QUIPU_COUNTERS_ADDED] * costs->counter;
}

void quipu_collect_costs(struct quipu_work *work) {
    enum { PAIRS, OF_MPI, TICKS, QUIET, COUNTERS, COUNT };
    const struct quipu_snapshot *mine = work->mine;
    uint64_t *all = calloc((size_t)quipu_below(&work->me) * COUNT, sizeof *all);
    work->me.good = all != NULL;
    if (quipu_agreed(&work->me) && all != NULL) {
        for (uint32_t i = 0; i < mine->nodes; i++) {
            const uint64_t *values = mine->values + (size_t)i * mine->metrics;
            const uint64_t *events = mine->events + (size_t)i * QUIPU_EVENTS;
            all[PAIRS] += events[QUIPU_PAIRS];
            all[OF_MPI] += is_mpi_node(work, i) ? events[QUIPU_PAIRS] : 0;
            all[TICKS] += mine->region[i] != UINT32_MAX ? values[QUIPU_TIME] : 0;
            all[QUIET] += events[QUIPU_QUIET_VISITS];
            all[COUNTERS] += events[QUIPU_COUNTERS_ADDED];
        }
        quipu_gather(&work->me, (char *)all, COUNT * sizeof *all);
        if (work->me.rank == 0) {
            const struct quipu_part part = {all, (size_t)work->me.size * COUNT * sizeof *all};
            quipu_file_section(&work->file, "COST", &part, 1);
        }
    }
    free(all);
}

/* Returns the values of this rank as the content of a section COLS, and sets *size to its bytes; NULL if there is no
 * memory. */
static char *own_rows(const struct quipu_work *work, uint64_t *size) {
    const uint32_t nodes = work->mine->nodes, metrics = work->mine->metrics;
    const uint32_t head[] = {(uint32_t)work->me.rank, nodes};
    *size = sizeof head + (uint64_t)nodes * (8 + 8 * ((uint64_t)metrics + QUIPU_EVENTS));
    char *message = malloc(*size), *to = message;
    if (message == NULL)
        return NULL;
    memcpy(to, head, sizeof head);
    to += sizeof head;
    memcpy(to, work->path, 4 * (size_t)nodes);
    to += 4 * (size_t)nodes;
    memcpy(to, work->mine->location, 4 * (size_t)nodes);
    to += 4 * (size_t)nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        memcpy(to, work->values + (size_t)i * metrics, 8 * (size_t)metrics);
        to += 8 * (size_t)metrics;
        memcpy(to, work->mine->events + (size_t)i * QUIPU_EVENTS, 8 * (size_t)QUIPU_EVENTS);
        to += 8 * (size_t)QUIPU_EVENTS;
    }
    return message;
}

void quipu_collect_rows(struct quipu_work *work) {
    uint64_t size = 0;
    char *rows = own_rows(work, &size), *piece = work->me.rank == 0 ? malloc(PIECE) : NULL;
    work->me.good = rows != NULL && (work->me.rank != 0 || piece != NULL);
    if (quipu_agreed(&work->me)) {
        const uint32_t crc = quipu_crc32(0, rows, size);
        if (work->me.rank == 0) {
            const struct quipu_part part = {rows, size};
            quipu_file_section(&work->file, "COLS", &part, 1);
            for (int rank = 1; rank < work->me.size; rank++) {
                uint64_t head[2];
                PMPI_Send(NULL, 0, MPI_BYTE, rank, TAG, work->me.comm);
                PMPI_Recv(head, sizeof head, MPI_BYTE, rank, TAG, work->me.comm, MPI_STATUS_IGNORE);
                quipu_file_head(&work->file, "COLS", (uint32_t)head[1], head[0]);
                for (uint64_t at = 0; at < head[0]; at += PIECE) {
                    const uint64_t length = head[0] - at < PIECE ? head[0] - at : PIECE;
                    quipu_receive_pieces(&work->me, piece, length, rank);
                    quipu_file_bytes(&work->file, piece, length);
                }
                quipu_file_pad(&work->file, head[0]);
            }
        } else {
            const uint64_t head[2] = {size, crc};
            PMPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, work->me.comm, MPI_STATUS_IGNORE);
            PMPI_Send(head, sizeof head, MPI_BYTE, 0, TAG, work->me.comm);
            quipu_send_pieces(&work->me, rows, size, 0);
        }
    }
    free(rows);
    free(piece);
}
