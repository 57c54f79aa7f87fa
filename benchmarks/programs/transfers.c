/* Between two ranks, and from a rank to itself: seconds of a message of one byte, and bytes per second of long ones.
 * The shortest of many, as two lines: latency and bandwidth. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 1, LONG = 1 << 16, TIMES = 200, WARM = 20 };

static char *out, *in;

/* One way of a message to `peer` and back. */
static double seconds(int bytes, int rank, int peer) {
    double shortest = 1e9;
    for (int i = 0; i < TIMES + WARM; i++) {
        const double begin = MPI_Wtime();
        if (rank == peer) {
            MPI_Sendrecv(out, bytes, MPI_CHAR, peer, 0, in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        } else if (rank == 0) {
            MPI_Send(out, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
        }
        const double took = (MPI_Wtime() - begin) / (rank == peer ? 1 : 2);
        if (i >= WARM && took < shortest)
            shortest = took;
    }
    return shortest;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    out = calloc(LONG, 1);
    in = calloc(LONG, 1);
    for (int to_itself = 0; to_itself < 2; to_itself++) {
        const int peer = to_itself ? rank : 1 - rank;
        const double latency = seconds(SHORT, rank, peer), whole = seconds(LONG, rank, peer);
        if (rank == 0)
            printf("%g %g\n", latency, LONG / (whole - latency));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
