/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 1 comes to one operation of each kind when rank 0 has been there for LATE seconds, however busy the machine is:
 * it sees in a file that both have mapped when rank 0 began. The file is left with the begin and end of each operation
 * on each rank (CLOCK_MONOTONIC). */
#include "expect.h"
#include "shared_file.h"

#define LATE 0.25

enum { LONG = 1 << 22, OPERATIONS = 6 };

static int rank, operation;
static char buffer[LONG];
static volatile double (*stamps)[2][2]; /* of each operation and rank: begin, end */

static void begin(void) {
    if (rank == 1)
        while (stamps[operation][0][0] == 0 || now() - stamps[operation][0][0] < LATE)
            ;
    stamps[operation][rank][0] = now();
}

static void end(void) { stamps[operation++][rank][1] = now(); }

/* A message from the sender to the other rank. */
static void message(int sender, int length) {
    if (rank == sender)
        MPI_Send(buffer, length, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(buffer, length, MPI_CHAR, sender, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void request(void) {
    MPI_Request pending;
    if (rank == 1) {
        MPI_Ssend(buffer, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(buffer, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &pending);
        MPI_Wait(&pending, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    int one = 1, sum;
    double length = LATE;
    MPI_Comm pair;
    stamps = map_file("stamps", OPERATIONS * sizeof *stamps, argv[1]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &pair);
    for (int i = 0; i < 2; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        begin();
        message(1, i == 0 ? 8 : LONG); /* late sender: MPI_Recv of rank 0 */
        end();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    begin();
    message(0, LONG); /* late receiver: MPI_Send of rank 0 */
    end();
    MPI_Barrier(MPI_COMM_WORLD);
    begin();
    request(); /* late sender: MPI_Wait of rank 0 */
    end();
    begin();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    end();
    begin();
    MPI_Bcast(&length, 1, MPI_DOUBLE, 0, pair);
    end();
    MPI_Comm_free(&pair);
    MPI_Finalize();
    return 0;
}
