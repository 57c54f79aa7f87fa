// SPDX-License-Identifier: Apache-2.0
#include "grid.hpp"

Grid::Grid(const std::array<int, 3> &zones_per_side) : zones(zones_per_side) {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 3, dims.data());
    const std::array<int, 3> periods{};
    MPI_Cart_create(MPI_COMM_WORLD, 3, dims.data(), periods.data(), 0, &communicator);
    MPI_Comm_rank(communicator, &rank);
    MPI_Cart_coords(communicator, rank, 3, place.data());
    for (int dimension = 0; dimension < 3; ++dimension)
        MPI_Cart_shift(communicator, dimension, 1, &neighbours[dimension][0], &neighbours[dimension][1]);
}

Grid::~Grid() { MPI_Comm_free(&communicator); }
