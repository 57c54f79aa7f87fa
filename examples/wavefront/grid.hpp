// SPDX-License-Identifier: Apache-2.0
// The process grid of a sweep: ranks in three dimensions, each with a block of zones.
#pragma once

#include <array>
#include <mpi.h>

struct Grid {
    explicit Grid(const std::array<int, 3> &zones_per_side);
    ~Grid();
    Grid(const Grid &) = delete;
    Grid &operator=(const Grid &) = delete;

    // The rank before (side 0) or behind (side 1) this one in a dimension, or MPI_PROC_NULL at the edge.
    [[nodiscard]] int neighbour(int dimension, int side) const { return neighbours[dimension][side]; }

    MPI_Comm communicator = MPI_COMM_NULL;
    int rank = 0;
    int ranks = 0;
    std::array<int, 3> zones;
    std::array<int, 3> dims{};
    std::array<int, 3> place{};

  private:
    std::array<std::array<int, 2>, 3> neighbours{};
};
