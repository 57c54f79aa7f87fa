/* endless FOLDER: operations until somebody ends it. Each rank counts them in FOLDER/progress-<rank>, a mapped file
 * like the profile, so that the counter survives as well: operations begun, operations finished. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define LONGEST 60 /* seconds */

int main(int argc, char **argv) {
    int rank;
    double one = 1, sum;
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/progress-%d", argc > 1 ? argv[1] : ".", rank);
    const int file = open(path, O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, 2 * sizeof(long)) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    volatile long *progress = mmap(NULL, 2 * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if ((void *)progress == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (const double start = MPI_Wtime(); MPI_Wtime() - start < LONGEST;) {
        progress[0]++;
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        progress[1]++;
    }
    MPI_Finalize();
    return 0;
}
