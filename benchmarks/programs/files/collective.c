/* SPDX-License-Identifier: Apache-2.0 */
/* MPI-IO: each rank writes its part of a common file, together and alone, reads the part of its neighbour, and has a
 * file of its own. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int count = argc > 1 ? atoi(argv[1]) : 20000;
    const MPI_Offset bytes = (MPI_Offset)count * (MPI_Offset)sizeof(double);
    double *part = malloc((size_t)bytes);
    for (int i = 0; i < count; i++)
        part[i] = rank + 0.001 * i;
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "field.bin", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, rank * bytes, part, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    for (int i = 0; i < 5; i++)
        MPI_File_write_at(file, (ranks + rank) * bytes + 100 * i, part, 100, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, (rank + 1) % ranks * bytes, part, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    char name[64];
    snprintf(name, sizeof name, "rank-%d.txt", rank);
    FILE *own = fopen(name, "w");
    for (int i = 0; i < 1000; i++)
        fprintf(own, "%d %.3f\n", i, part[i]);
    fclose(own);
    free(part);
    MPI_Finalize();
    return 0;
}
