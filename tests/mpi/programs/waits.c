/* Rank 1 comes LATE seconds late to one operation of each kind; before, each is done once with both there. */
#include "expect.h"

#define LATE 0.25

enum { LONG = 1 << 22 };

static int rank;
static char buffer[LONG];

static void work(double seconds) {
    const double start = MPI_Wtime();
    while (MPI_Wtime() - start < seconds)
        ;
}

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
        work(LATE);
        MPI_Ssend(buffer, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
        MPI_Irecv(buffer, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &pending);
        MPI_Wait(&pending, MPI_STATUS_IGNORE);
    }
}

static void late(void) {
    if (rank == 1)
        work(LATE);
}

int main(int argc, char **argv) {
    int one = 1, sum;
    double length = LATE;
    MPI_Comm pair;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &pair);
    for (int i = 0; i < 2; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        late();
        message(1, i == 0 ? 8 : LONG); /* late sender: MPI_Recv of rank 0 */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    late();
    message(0, LONG); /* late receiver: MPI_Send of rank 0 */
    MPI_Barrier(MPI_COMM_WORLD);
    request(); /* late sender: MPI_Wait of rank 0 */
    late();
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    late();
    MPI_Bcast(&length, 1, MPI_DOUBLE, 0, pair);
    MPI_Comm_free(&pair);
    MPI_Finalize();
    return 0;
}
