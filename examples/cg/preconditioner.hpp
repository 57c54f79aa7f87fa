// SPDX-License-Identifier: Apache-2.0
// Preconditioners, chosen by name at run time.
#pragma once

#include "matrix.hpp"

#include <memory>
#include <string_view>

namespace cg {

template <class Scalar> class Preconditioner {
  public:
    virtual ~Preconditioner() = default;
    // z = M^-1 r
    virtual void apply(const Vector<Scalar> &r, Vector<Scalar> &z) const = 0;
    // An upper bound of the condition number of M^-1 A.
    virtual double condition_bound() const = 0;
};

// "none" or "jacobi"; throws UsageError for another name.
template <class Scalar>
std::unique_ptr<Preconditioner<Scalar>> make_preconditioner(std::string_view name,
                                                            const ReactionDiffusion<Scalar> &matrix);

} // namespace cg
