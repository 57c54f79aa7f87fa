// SPDX-License-Identifier: Apache-2.0
#include "datatype.hpp"
#include "matrix.hpp"

#include <mpi.h>

namespace cg {

template <class Scalar> void exchange_planes(const Partition &partition, Vector<Scalar> &x) {
    enum { upwards, downwards };
    const int count = static_cast<int>(x.plane());
    const Scalar *first = x.data();
    const Scalar *last = x.data() + x.size() - x.plane();
    MPI_Sendrecv(last, count, datatype<Scalar>(), partition.above(), upwards, x.ghost_below(), count,
                 datatype<Scalar>(), partition.below(), upwards, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(first, count, datatype<Scalar>(), partition.below(), downwards, x.ghost_above(), count,
                 datatype<Scalar>(), partition.above(), downwards, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

template void exchange_planes(const Partition &, Vector<double> &);

} // namespace cg
