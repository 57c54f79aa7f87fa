/* SPDX-License-Identifier: Apache-2.0 */
#include "halo.h"

#include "face.h"

#include <stdio.h>
#include <stdlib.h>

enum { FACES = 6 };

void halo_create(struct halo *halo, const struct grid *grid) {
    size_t total = 0;
    for (int d = 0; d < 3; ++d)
        total += 4 * face_values(grid, d);
    halo->storage = malloc(total * sizeof *halo->storage);
    if (!halo->storage) {
        fprintf(stderr, "heat: rank %d has no memory for %zu halo values\n", grid->rank, total);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
        return;
    }
    double *next = halo->storage;
    for (int d = 0; d < 3; ++d)
        for (int direction = 0; direction < 2; ++direction) {
            halo->send[d][direction] = next;
            next += face_values(grid, d);
            halo->receive[d][direction] = next;
            next += face_values(grid, d);
        }
}

void halo_free(struct halo *halo) {
    free(halo->storage);
    halo->storage = NULL;
}

void halo_exchange(struct halo *halo, const struct grid *grid, double *field) {
    MPI_Request requests[2 * FACES];
    int posted = 0;
    /* The tag is the face that the message leaves from: with two ranks in a dimension both neighbours are the same
     * rank, and only the tag distinguishes their messages. */
    for (int d = 0; d < 3; ++d)
        for (int direction = 0; direction < 2; ++direction)
            MPI_Irecv(halo->receive[d][direction], (int)face_values(grid, d), MPI_DOUBLE, grid->neighbor[d][direction],
                      2 * d + (1 - direction), grid->comm, &requests[posted++]);
    for (int d = 0; d < 3; ++d)
        for (int direction = 0; direction < 2; ++direction) {
            face_pack(grid, field, d, direction == 0 ? 1 : grid->cells[d], halo->send[d][direction]);
            MPI_Isend(halo->send[d][direction], (int)face_values(grid, d), MPI_DOUBLE, grid->neighbor[d][direction],
                      2 * d + direction, grid->comm, &requests[posted++]);
        }
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    for (int d = 0; d < 3; ++d)
        for (int direction = 0; direction < 2; ++direction)
            face_unpack(grid, field, d, direction == 0 ? 0 : grid->cells[d] + 1, halo->receive[d][direction]);
}
