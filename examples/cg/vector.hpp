// SPDX-License-Identifier: Apache-2.0
// A vector that is distributed over the ranks, and the operations that CG needs.
#pragma once

#include "partition.hpp"

#include <utility>
#include <vector>

namespace cg {

// Owned points first, then a ghost plane from the rank below and one from the rank above.
template <class Scalar> class Vector {
  public:
    explicit Vector(const Partition &partition)
        : owned_(partition.points()), plane_(partition.plane_points()), values_(owned_ + 2 * plane_) {}

    std::size_t size() const { return owned_; }
    std::size_t plane() const { return plane_; }
    Scalar &operator[](std::size_t i) { return values_[i]; }
    const Scalar &operator[](std::size_t i) const { return values_[i]; }
    Scalar *data() { return values_.data(); }
    const Scalar *data() const { return values_.data(); }
    Scalar *ghost_below() { return values_.data() + owned_; }
    Scalar *ghost_above() { return values_.data() + owned_ + plane_; }

  private:
    std::size_t owned_;
    std::size_t plane_;
    std::vector<Scalar> values_;
};

// Inner products over all ranks. Collective: one MPI_Allreduce of one or of two scalars.
template <class Scalar> Scalar dot(const Vector<Scalar> &a, const Vector<Scalar> &b);
template <class Scalar>
std::pair<Scalar, Scalar> dot_pair(const Vector<Scalar> &a, const Vector<Scalar> &b, const Vector<Scalar> &c);

// y += alpha x
template <class Scalar> void add_scaled(Vector<Scalar> &y, Scalar alpha, const Vector<Scalar> &x);
// y = x + beta y
template <class Scalar> void scale_and_add(Vector<Scalar> &y, Scalar beta, const Vector<Scalar> &x);

} // namespace cg
