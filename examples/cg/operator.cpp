// SPDX-License-Identifier: Apache-2.0
#include "matrix.hpp"
#include "problem.hpp"

namespace cg {

template <class Scalar>
ReactionDiffusion<Scalar>::ReactionDiffusion(const Partition &partition) : partition_(partition) {
    assemble();
}

template <class Scalar> void ReactionDiffusion<Scalar>::assemble() {
    const std::size_t n = partition_.n;
    const std::size_t plane = partition_.plane_points();
    const std::size_t planes = partition_.planes;
    const std::size_t ghost_below = partition_.points();
    const std::size_t ghost_above = ghost_below + plane;
    matrix_.reserve(partition_.points(), 7 * partition_.points());
    diagonal_.reserve(partition_.points());
    for (std::size_t z = 0; z < planes; ++z)
        for (std::size_t y = 0; y < n; ++y)
            for (std::size_t x = 0; x < n; ++x) {
                const std::size_t in_plane = y * n + x;
                const std::size_t row = z * plane + in_plane;
                const std::size_t line = z * plane + y * n;
                const Scalar reaction = static_cast<Scalar>(reaction_at(partition_.first_point() + row));
                diagonal_.push_back(6 + reaction);
                matrix_.append(z > 0 ? row - plane : ghost_below + in_plane, -1);
                matrix_.append(z * plane + (y + n - 1) % n * n + x, -1);
                matrix_.append(line + (x + n - 1) % n, -1);
                matrix_.append(row, diagonal_.back());
                matrix_.append(line + (x + 1) % n, -1);
                matrix_.append(z * plane + (y + 1) % n * n + x, -1);
                matrix_.append(z + 1 < planes ? row + plane : ghost_above + in_plane, -1);
                matrix_.end_row();
            }
}

template <class Scalar> void ReactionDiffusion<Scalar>::apply(Vector<Scalar> &x, Vector<Scalar> &y) const {
    exchange_planes(partition_, x);
    matrix_.multiply(x.data(), y.data());
}

template class ReactionDiffusion<double>;

} // namespace cg
