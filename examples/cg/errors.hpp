// SPDX-License-Identifier: Apache-2.0
// What can go wrong. All ranks throw together: arguments and global sums are the same everywhere.
#pragma once

#include <stdexcept>

namespace cg {

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct SolverError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The matrix or the preconditioner is not positive definite, or numbers overflowed.
struct Breakdown : SolverError {
    using SolverError::SolverError;
};

// The tolerance was not reached within the iterations allowed.
struct NotConverged : SolverError {
    using SolverError::SolverError;
};

} // namespace cg
