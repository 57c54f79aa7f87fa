// SPDX-License-Identifier: Apache-2.0
// Preconditioned conjugate gradients (Hestenes, Stiefel 1952; Saad: Iterative Methods for Sparse Linear Systems,
// algorithm 9.1).
#pragma once

#include "errors.hpp"
#include "preconditioner.hpp"
#include "vector.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <tuple>

namespace cg {

struct Limits {
    int iterations;
    double tolerance; // of |r| / |b|; 0: all iterations are done
};

struct Progress {
    int iterations;
    double residual; // |r| as the recurrence has it
};

// Solve A x = b from x = 0. `Operator` has apply(x, y) with y = A x. One operator application, one dot and one
// dot_pair per iteration, and one dot and one dot_pair before the first.
template <class Scalar, class Operator>
Progress conjugate_gradients(const Operator &a, const Preconditioner<Scalar> &m, const Vector<Scalar> &b,
                             Vector<Scalar> &x, const Limits &limits) {
    Vector<Scalar> r = b, z = b, p = b, q = b;
    m.apply(r, z);
    p = z;
    auto [rr, rz] = dot_pair(r, r, z);
    const Scalar target = static_cast<Scalar>(limits.tolerance * limits.tolerance) * rr;
    // Below this the residual is zero to working precision, and its square is about to underflow.
    const Scalar vanished = std::numeric_limits<Scalar>::min() / std::numeric_limits<Scalar>::epsilon();
    int iteration = 0;
    while (iteration < limits.iterations && rr > target && rr > vanished) {
        a.apply(p, q);
        const Scalar curvature = dot(p, q);
        if (!(curvature > 0))
            throw Breakdown("p'Ap is not positive in iteration " + std::to_string(iteration + 1));
        const Scalar alpha = rz / curvature;
        add_scaled(x, alpha, p);
        add_scaled(r, -alpha, q);
        m.apply(r, z);
        const Scalar old = rz;
        std::tie(rr, rz) = dot_pair(r, r, z);
        scale_and_add(p, rz / old, z);
        ++iteration;
    }
    const double residual = std::sqrt(static_cast<double>(rr));
    if (limits.tolerance > 0 && rr > target)
        throw NotConverged("residual " + std::to_string(residual) + " after " + std::to_string(iteration) +
                           " iterations is above the tolerance");
    return {iteration, residual};
}

} // namespace cg
