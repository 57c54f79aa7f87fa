/* SPDX-License-Identifier: Apache-2.0 */
/* What two_languages.f90 calls: C that works for Fortran, calls it, and completes its requests. */
#include <mpi.h>

double ckern_(const int *n, const double *x) {
    double sum = 0;
    for (int i = 0; i < *n; i++)
        sum += x[i] * x[i];
    return sum;
}

void cexchange(const MPI_Fint *of_fortran, const double *x, int n) {
    MPI_Comm comm = MPI_Comm_f2c(*of_fortran);
    int rank, size;
    double y[64];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(x, n, MPI_DOUBLE, (rank + 1) % size, 0, y, n, MPI_DOUBLE, (rank + size - 1) % size, 0, comm,
                 MPI_STATUS_IGNORE);
}

void fsub_(int *n);
void cback_(int *n) { fsub_(n); }

void cwait_(MPI_Fint *of_fortran) {
    MPI_Request request = MPI_Request_f2c(*of_fortran);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    *of_fortran = MPI_Request_c2f(request);
}
