// SPDX-License-Identifier: Apache-2.0
// Discrete ordinates transport, upwind differences: one sweep visits all zones in each of the eight directions.
#pragma once

#include "grid.hpp"

#include <array>
#include <vector>

// A direction of flight: +1 or -1 in each dimension.
using Octant = std::array<int, 3>;

class Sweep {
  public:
    static constexpr int groups = 16;

    explicit Sweep(const Grid &grid);
    // Sweep all octants, one after the other; the scalar flux is that of this sweep afterwards.
    void run();
    // The largest difference between the flux and the exact solution on this rank, relative.
    [[nodiscard]] double largest_error() const;
    // The sum of the flux over all zones and groups of this rank.
    [[nodiscard]] double total() const;

  private:
    void receive_upwind(const Octant &octant);
    void sweep_block(const Octant &octant);
    void send_downwind(const Octant &octant);
    void set_boundary(int dimension, const Octant &octant);
    [[nodiscard]] double exact(int i, int j, int k) const;

    const Grid &grid;
    // Angular flux at the faces that a sweep comes through and leaves by, per dimension: zones of the face x groups
    // values.
    std::array<std::vector<double>, 3> faces;
    std::vector<double> flux;
};
