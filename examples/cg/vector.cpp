// SPDX-License-Identifier: Apache-2.0
#include "vector.hpp"

#include "datatype.hpp"

#include <mpi.h>

namespace cg {

template <class Scalar> Scalar dot(const Vector<Scalar> &a, const Vector<Scalar> &b) {
    Scalar local = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        local += a[i] * b[i];
    Scalar total = 0;
    MPI_Allreduce(&local, &total, 1, datatype<Scalar>(), MPI_SUM, MPI_COMM_WORLD);
    return total;
}

// The products a.b and a.c in one pass and one reduction.
template <class Scalar>
std::pair<Scalar, Scalar> dot_pair(const Vector<Scalar> &a, const Vector<Scalar> &b, const Vector<Scalar> &c) {
    Scalar local[2] = {0, 0};
    for (std::size_t i = 0; i < a.size(); ++i) {
        local[0] += a[i] * b[i];
        local[1] += a[i] * c[i];
    }
    Scalar total[2];
    MPI_Allreduce(local, total, 2, datatype<Scalar>(), MPI_SUM, MPI_COMM_WORLD);
    return {total[0], total[1]};
}

template <class Scalar> void add_scaled(Vector<Scalar> &y, Scalar alpha, const Vector<Scalar> &x) {
    for (std::size_t i = 0; i < y.size(); ++i)
        y[i] += alpha * x[i];
}

template <class Scalar> void scale_and_add(Vector<Scalar> &y, Scalar beta, const Vector<Scalar> &x) {
    for (std::size_t i = 0; i < y.size(); ++i)
        y[i] = x[i] + beta * y[i];
}

template double dot(const Vector<double> &, const Vector<double> &);
template std::pair<double, double> dot_pair(const Vector<double> &, const Vector<double> &, const Vector<double> &);
template void add_scaled(Vector<double> &, double, const Vector<double> &);
template void scale_and_add(Vector<double> &, double, const Vector<double> &);

} // namespace cg
