/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of which the first two start a third process, which is none of them: their child has no argument. */
#include <mpi.h>

__attribute__((noinline, optnone)) static void work(void) {}

int main(int argc, char **argv) {
    MPI_Comm parent, children;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    work();
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
        MPI_Comm_disconnect(&children);
    } else {
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return 0;
}
