/* SPDX-License-Identifier: Apache-2.0 */
/* A PMPI library as computing centres preload them: it counts messages, and says so at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

static long messages;

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    messages++;
#ifdef HIDES_ITS_CALLS
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm) = NULL;
    *(void **)&send = dlsym(RTLD_DEFAULT, "PMPI_Send");
    return send(data, count, type, to, tag, comm);
#else
    return PMPI_Send(data, count, type, to, tag, comm);
#endif
}

int MPI_Finalize(void) {
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("%ld messages\n", messages);
        fflush(stdout);
    }
    return PMPI_Finalize();
}
