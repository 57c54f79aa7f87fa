// SPDX-License-Identifier: Apache-2.0
// The MPI datatype of a C++ type.
#pragma once

#include <mpi.h>

namespace cg {

template <class Scalar> MPI_Datatype datatype();
template <> inline MPI_Datatype datatype<double>() { return MPI_DOUBLE; }
template <> inline MPI_Datatype datatype<float>() { return MPI_FLOAT; }

} // namespace cg
