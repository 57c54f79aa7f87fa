// SPDX-License-Identifier: Apache-2.0
#include "sweep.hpp"

#include <algorithm>
#include <cmath>

namespace {

// Cosines of the direction over the width of a zone, total cross section of a group, and the exact solution
// 1 + x + 2 y + 3 z with x, y, z counted in zones: upwind differences of a linear function are exact.
constexpr std::array<double, 3> cosine = {0.35, 0.50, 0.79};
constexpr std::array<double, 3> slope = {1.0, 2.0, 3.0};
double cross_section(int group) { return 1.0 + 0.25 * group; }

} // namespace

Sweep::Sweep(const Grid &own) : grid(own) {
    const auto [nx, ny, nz] = grid.zones;
    const std::size_t cells = static_cast<std::size_t>(nx) * ny * nz * groups;
    for (int dimension = 0; dimension < 3; ++dimension)
        faces[dimension].resize(cells / grid.zones[dimension]);
    flux.resize(cells);
}

// i, j, k from -1 to zones: zones of this rank and those around them.
double Sweep::exact(int i, int j, int k) const {
    return 1.0 + slope[0] * (grid.place[0] * grid.zones[0] + i) + slope[1] * (grid.place[1] * grid.zones[1] + j) +
           slope[2] * (grid.place[2] * grid.zones[2] + k);
}

void Sweep::run() {
    std::fill(flux.begin(), flux.end(), 0.0);
    for (int number = 0; number < 8; ++number) {
        const Octant octant = {number & 1 ? -1 : 1, number & 2 ? -1 : 1, number & 4 ? -1 : 1};
        receive_upwind(octant);
        sweep_block(octant);
        send_downwind(octant);
    }
}

// What flies into the whole domain is known: the exact solution one zone outside.
void Sweep::set_boundary(int dimension, const Octant &octant) {
    std::vector<double> &face = faces[dimension];
    const int outside = octant[dimension] > 0 ? -1 : grid.zones[dimension];
    const int rows = grid.zones[dimension == 0 ? 1 : 0];
    const int columns = grid.zones[dimension == 2 ? 1 : 2];
    std::size_t place = 0;
    for (int a = 0; a < rows; ++a)
        for (int b = 0; b < columns; ++b)
            for (int group = 0; group < groups; ++group)
                face[place++] = dimension == 0   ? exact(outside, a, b)
                                : dimension == 1 ? exact(a, outside, b)
                                                 : exact(a, b, outside);
}

void Sweep::receive_upwind(const Octant &octant) {
    for (int dimension = 0; dimension < 3; ++dimension) {
        const int from = grid.neighbour(dimension, octant[dimension] > 0 ? 0 : 1);
        const int count = static_cast<int>(faces[dimension].size());
        if (from == MPI_PROC_NULL)
            set_boundary(dimension, octant);
        MPI_Recv(faces[dimension].data(), count, MPI_DOUBLE, from, dimension, grid.communicator, MPI_STATUS_IGNORE);
    }
}

void Sweep::send_downwind(const Octant &octant) {
    for (int dimension = 0; dimension < 3; ++dimension) {
        const int to = grid.neighbour(dimension, octant[dimension] > 0 ? 1 : 0);
        const int count = static_cast<int>(faces[dimension].size());
        MPI_Send(faces[dimension].data(), count, MPI_DOUBLE, to, dimension, grid.communicator);
    }
}

// Each zone takes the flux at three faces from its upwind neighbours and leaves its own there.
void Sweep::sweep_block(const Octant &octant) {
    const auto [nx, ny, nz] = grid.zones;
    const double leak = cosine[0] + cosine[1] + cosine[2];
    const double rise =
        cosine[0] * slope[0] * octant[0] + cosine[1] * slope[1] * octant[1] + cosine[2] * slope[2] * octant[2];
    for (int x = 0; x < nx; ++x) {
        const int i = octant[0] > 0 ? x : nx - 1 - x;
        for (int y = 0; y < ny; ++y) {
            const int j = octant[1] > 0 ? y : ny - 1 - y;
            for (int z = 0; z < nz; ++z) {
                const int k = octant[2] > 0 ? z : nz - 1 - z;
                double *in_x = &faces[0][(static_cast<std::size_t>(j) * nz + k) * groups];
                double *in_y = &faces[1][(static_cast<std::size_t>(i) * nz + k) * groups];
                double *in_z = &faces[2][(static_cast<std::size_t>(i) * ny + j) * groups];
                double *sum = &flux[((static_cast<std::size_t>(i) * ny + j) * nz + k) * groups];
                const double solution = exact(i, j, k);
                for (int group = 0; group < groups; ++group) {
                    const double source = cross_section(group) * solution + rise;
                    const double incoming = cosine[0] * in_x[group] + cosine[1] * in_y[group] + cosine[2] * in_z[group];
                    const double angular = (source + incoming) / (cross_section(group) + leak);
                    in_x[group] = in_y[group] = in_z[group] = angular;
                    sum[group] += 0.125 * angular;
                }
            }
        }
    }
}

double Sweep::largest_error() const {
    const auto [nx, ny, nz] = grid.zones;
    double largest = 0.0;
    const double *own = flux.data();
    for (int i = 0; i < nx; ++i)
        for (int j = 0; j < ny; ++j)
            for (int k = 0; k < nz; ++k)
                for (int group = 0; group < groups; ++group)
                    largest = std::max(largest, std::abs(*own++ / exact(i, j, k) - 1.0));
    return largest;
}

double Sweep::total() const {
    double sum = 0.0;
    for (const double value : flux)
        sum += value;
    return sum;
}
