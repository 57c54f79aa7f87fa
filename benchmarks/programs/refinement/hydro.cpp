// SPDX-License-Identifier: Apache-2.0
// The steps of a small Lagrangian hydrodynamics code on a mesh of quadrilaterals, after the pattern of LULESH: kernels
// that loop over all elements or nodes, and call tiny functions for every number they need.
#include "mesh.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#ifdef WITH_MPI
#include <mpi.h>
#endif

/// The corners of an element, as every kernel needs them first.
static inline void gather(const Mesh &mesh, int element, double (&x)[4], double (&y)[4]) {
    for (int a = 0; a < 4; a++) {
        const int node = mesh.corner(element, a);
        x[a] = mesh.x(node);
        y[a] = mesh.y(node);
    }
}

static inline double area(const double (&x)[4], const double (&y)[4]) {
    return 0.5 * ((x[2] - x[0]) * (y[3] - y[1]) - (x[3] - x[1]) * (y[2] - y[0]));
}

void computePressures(Mesh &mesh, const Material &material) {
    double x[4], y[4];
    for (int element = 0; element < mesh.elements(); element++) {
        gather(mesh, element, x, y);
        mesh.setPressure(element, material.pressure(mesh.mass(element) / area(x, y), mesh.energy(element)));
    }
}

void computeForces(Mesh &mesh, double dt) {
    double x[4], y[4];
    for (int element = 0; element < mesh.elements(); element++) {
        gather(mesh, element, x, y);
        double p = 0.5 * dt * mesh.pressure(element);
        for (int a = 0; a < 4; a++) {
            int before = (a + 3) & 3, next = (a + 1) & 3;
            mesh.accelerate(mesh.corner(element, a), p * (y[next] - y[before]), p * (x[before] - x[next]));
        }
    }
}

void computeViscosity(Mesh &mesh, double dt) {
    for (int element = 0; element < mesh.elements(); element++) {
        double u = 0, v = 0;
        for (int a = 0; a < 4; a++) {
            u += 0.25 * mesh.velocityX(mesh.corner(element, a));
            v += 0.25 * mesh.velocityY(mesh.corner(element, a));
        }
        double q = 0;
        for (int a = 0; a < 4; a++) {
            int node = mesh.corner(element, a);
            q += std::hypot(mesh.velocityX(node) - u, mesh.velocityY(node) - v);
        }
        mesh.setEnergy(element, mesh.energy(element) + 1e-3 * dt * q);
    }
}

void moveNodes(Mesh &mesh, double dt) {
    for (int node = 0; node < mesh.nodes(); node++)
        mesh.move(node, dt * mesh.velocityX(node), dt * mesh.velocityY(node));
}

void updateEnergies(Mesh &mesh, double dt) {
    double x[4], y[4];
    for (int element = 0; element < mesh.elements(); element++) {
        gather(mesh, element, x, y);
        double before = area(x, y), work = 0;
        for (int a = 0; a < 4; a++) {
            int node = mesh.corner(element, a);
            work += mesh.velocityX(node) * mesh.velocityX(node) + mesh.velocityY(node) * mesh.velocityY(node);
        }
        mesh.setEnergy(element, mesh.energy(element) - 1e-4 * dt * mesh.pressure(element) * work / before);
    }
}

double timeStep(const Mesh &mesh) {
    double least = 1.0, x[4], y[4];
    for (int element = 0; element < mesh.elements(); element++) {
        gather(mesh, element, x, y);
        least = std::fmin(least, std::sqrt(area(x, y)) / (1.0 + std::sqrt(std::fabs(mesh.energy(element)))));
    }
    return 0.05 * least;
}

/// A small function with a loop, once per row: a region of its own that is entered often.
double rowSum(Mesh &mesh, int which) {
    const double *values = mesh.row(which);
    double sum = 0;
    for (int i = 0; i < mesh.width(); i++)
        sum += values[i];
    return sum;
}

double totalEnergy(Mesh &mesh) {
    double sum = 0;
    for (int row = 0; row < mesh.width(); row++)
        sum += rowSum(mesh, row);
    return sum;
}

void exchange(Mesh &mesh) {
#ifdef WITH_MPI
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Sendrecv_replace(mesh.row(0), mesh.width(), MPI_DOUBLE, (rank + 1) % ranks, 0, (rank + ranks - 1) % ranks, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
    mesh.row(0)[0] += 1e-9;
#endif
}

double agree(double value) {
#ifdef WITH_MPI
    double least;
    MPI_Allreduce(&value, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return least;
#else
    return value;
#endif
}

double step(Mesh &mesh, const Material &material) {
    double dt = agree(timeStep(mesh));
    computePressures(mesh, material);
    computeForces(mesh, dt);
    computeViscosity(mesh, dt);
    moveNodes(mesh, dt);
    updateEnergies(mesh, dt);
    exchange(mesh);
    return dt;
}

int main(int argc, char **argv) {
#ifdef WITH_MPI
    MPI_Init(&argc, &argv);
#endif
    const int size = argc > 1 ? atoi(argv[1]) : 32, steps = argc > 2 ? atoi(argv[2]) : 50;
    Mesh mesh(size);
    std::unique_ptr<Material> material(makeMaterial(argc > 3));
    double time = 0, energy = 0;
    for (int i = 0; i < steps; i++) {
        time += step(mesh, *material);
        energy = totalEnergy(mesh);
    }
    printf("time %.6g energy %.9g\n", time, energy);
#ifdef WITH_MPI
    MPI_Finalize();
#endif
    return 0;
}
