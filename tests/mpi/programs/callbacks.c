/* SPDX-License-Identifier: Apache-2.0 */
/* MPI calls from inside MPI calls, and an error handler that leaves one by longjmp. */
#include <setjmp.h>

#include "expect.h"

static jmp_buf before_error;

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    int size;
    MPI_Type_size(*type, &size); /* a call from within MPI_Allreduce: no region of its own */
    MPI_Send(in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF);
    for (int i = 0; i < *count && size == sizeof(int); i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void jump(MPI_Comm *comm, int *error, ...) {
    (void)comm;
    (void)error;
    longjmp(before_error, 1);
}

int main(int argc, char **argv) {
    int ranks, in = 1, out = 0;
    MPI_Op op;
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD);
    expect_collective("MPI_Allreduce", 4, 4, ranks);
    if (out != ranks)
        fail("the sum is wrong");
    MPI_Op_free(&op);

    MPI_Comm_create_errhandler(jump, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (setjmp(before_error) == 0) {
        MPI_Bcast(&in, 1, MPI_INT, ranks, MPI_COMM_WORLD); /* no such root */
        fail("the error handler was not called");
    }
    MPI_Bcast(&in, 1, MPI_INT, 0, MPI_COMM_WORLD); /* counts again */
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    expect_collective("MPI_Bcast", rank == 0 ? 4 * ranks : 0, 4, ranks);
    write_expectations(argv[1]);
    MPI_Finalize();
    return 0;
}
