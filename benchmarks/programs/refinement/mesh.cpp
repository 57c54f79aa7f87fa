// SPDX-License-Identifier: Apache-2.0
#include "mesh.h"

Mesh::Mesh(int size)
    : size_(size), corners_(4 * size * size), x_((size + 1) * (size + 1)), y_(x_.size()), vx_(x_.size()),
      vy_(x_.size()), mass_(size * size, 1.0), energy_(size * size, 1e-3), pressure_(size * size) {
    for (int j = 0; j <= size; j++)
        for (int i = 0; i <= size; i++) {
            x_[j * (size + 1) + i] = i;
            y_[j * (size + 1) + i] = j;
        }
    for (int j = 0; j < size; j++)
        for (int i = 0; i < size; i++) {
            int *corner = &corners_[4 * (j * size + i)];
            corner[0] = j * (size + 1) + i;
            corner[1] = corner[0] + 1;
            corner[2] = corner[0] + size + 2;
            corner[3] = corner[0] + size + 1;
        }
    energy_[0] = 1.0;
}

int Mesh::elements() const { return size_ * size_; }
int Mesh::nodes() const { return (size_ + 1) * (size_ + 1); }
int Mesh::corner(int element, int which) const { return corners_[4 * element + which]; }
double Mesh::x(int node) const { return x_[node]; }
double Mesh::y(int node) const { return y_[node]; }
double Mesh::velocityX(int node) const { return vx_[node]; }
double Mesh::velocityY(int node) const { return vy_[node]; }
double Mesh::mass(int element) const { return mass_[element]; }
double Mesh::energy(int element) const { return energy_[element]; }
double Mesh::pressure(int element) const { return pressure_[element]; }
void Mesh::move(int node, double dx, double dy) {
    x_[node] += dx;
    y_[node] += dy;
}
void Mesh::accelerate(int node, double fx, double fy) {
    vx_[node] += fx;
    vy_[node] += fy;
}
void Mesh::setEnergy(int element, double value) { energy_[element] = value; }
void Mesh::setPressure(int element, double value) { pressure_[element] = value; }
double *Mesh::row(int which) { return &energy_[static_cast<long>(which) * size_]; }
int Mesh::width() const { return size_; }

namespace {

class Ideal : public Material {
    double pressure(double density, double energy) const override { return 0.4 * density * energy; }
};

class Stiff : public Material {
    double pressure(double density, double energy) const override { return 0.4 * density * energy + 1e-6; }
};

} // namespace

Material *makeMaterial(bool stiff) { return stiff ? static_cast<Material *>(new Stiff) : new Ideal; }
