// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

namespace cg {

void fill_solution(const Partition &partition, Vector<double> &u) {
    for (std::size_t i = 0; i < u.size(); ++i)
        u[i] = solution_at(partition.first_point() + i);
}

void fill_right_hand_side(const Partition &partition, Vector<double> &f) {
    const std::uint64_t n = partition.n;
    const std::uint64_t depth = partition.planes * static_cast<std::uint64_t>(partition.ranks);
    const std::uint64_t first_plane = partition.planes * static_cast<std::uint64_t>(partition.rank);
    const auto at = [n](std::uint64_t x, std::uint64_t y, std::uint64_t z) { return (z * n + y) * n + x; };
    std::size_t row = 0;
    for (std::uint64_t z = first_plane; z < first_plane + partition.planes; ++z)
        for (std::uint64_t y = 0; y < n; ++y)
            for (std::uint64_t x = 0; x < n; ++x) {
                const double around = solution_at(at(x, y, (z + depth - 1) % depth)) +
                                      solution_at(at(x, (y + n - 1) % n, z)) + solution_at(at((x + n - 1) % n, y, z)) +
                                      solution_at(at((x + 1) % n, y, z)) + solution_at(at(x, (y + 1) % n, z)) +
                                      solution_at(at(x, y, (z + 1) % depth));
                const std::uint64_t here = at(x, y, z);
                f[row++] = (6 + reaction_at(here)) * solution_at(here) - around;
            }
}

} // namespace cg
