/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks exchange a message N times; rank 0 computes after each while rank 1 waits. A reduction calls back. */
#include <mpi.h>
#include <stdlib.h>

static volatile double result;

__attribute__((noinline)) static void compute(int n) {
    for (int i = 0; i < n; i++)
        result += i;
}

__attribute__((noinline)) static void add(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)type;
    compute(10);
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 1;
    int rank, value = 1, sum = 0;
    MPI_Op op;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < n; i++) {
        if (rank == 0) {
            MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compute(1000);
        } else if (rank == 1) {
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
    }
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    if (argc > 2) /* a rank that does not come to its end */
        exit(rank == 1 ? 7 : 0);
    MPI_Finalize();
    return 0;
}
