/* SPDX-License-Identifier: Apache-2.0 */
// A mesh that hides its arrays behind functions in another file, as libraries of simulation codes do.
#ifndef MESH_H
#define MESH_H

#include <vector>

class Mesh {
  public:
    explicit Mesh(int size);

    int elements() const;
    int nodes() const;
    int corner(int element, int which) const;
    double x(int node) const;
    double y(int node) const;
    double velocityX(int node) const;
    double velocityY(int node) const;
    double mass(int element) const;
    double energy(int element) const;
    double pressure(int element) const;
    void move(int node, double dx, double dy);
    void accelerate(int node, double fx, double fy);
    void setEnergy(int element, double value);
    void setPressure(int element, double value);
    double *row(int which);
    int width() const;

  private:
    int size_;
    std::vector<int> corners_;
    std::vector<double> x_, y_, vx_, vy_, mass_, energy_, pressure_;
};

/// A law between density, energy and pressure; programs choose one when they run.
class Material {
  public:
    virtual ~Material() = default;
    virtual double pressure(double density, double energy) const = 0;
};
Material *makeMaterial(bool stiff);

#endif
