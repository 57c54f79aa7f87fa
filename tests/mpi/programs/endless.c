/* SPDX-License-Identifier: Apache-2.0 */
/* endless FOLDER [sit|abort|mpi_abort]: operations until somebody ends it. With `sit` one of them, and then a function
 * that does nothing more that could be counted; with the others rank 1 aborts the program instead of that. Each rank
 * keeps a file FOLDER/progress-<rank>, mapped like the profile, so that it survives as well: when main began
 * (CLOCK_MONOTONIC in ns), operations begun, operations finished. The first of them is written last: a file in which it
 * is not 0 belongs to a rank that is at work. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LONGEST 150 /* seconds */

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

__attribute__((noinline)) static void sit(long until) {
    const struct timespec pause = {0, 10000000};
    while (now() < until)
        nanosleep(&pause, NULL);
}

int main(int argc, char **argv) {
    const long start = now();
    const long until = start + LONGEST * 1000000000L;
    int rank;
    double one = 1, sum;
    char path[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s/progress-%d", argc > 1 ? argv[1] : ".", rank);
    const int file = open(path, O_RDWR | O_CREAT, 0644);
    if (file < 0 || ftruncate(file, 3 * sizeof(long)) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    volatile long *progress = mmap(NULL, 3 * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if ((void *)progress == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const char *mode = argc > 2 ? argv[2] : "";
    progress[0] = start;
    do {
        progress[1]++;
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        progress[2]++;
    } while (!*mode && now() < until);
    if (rank == 1 && strcmp(mode, "abort") == 0)
        abort();
    if (rank == 1 && strcmp(mode, "mpi_abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    sit(until);
    MPI_Finalize();
    return 0;
}
