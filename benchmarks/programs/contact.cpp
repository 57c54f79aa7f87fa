// SPDX-License-Identifier: Apache-2.0
// Like a contact-mechanics code: spheres of several materials in a grid of cells, pair forces chosen by templates and
// virtual functions, history of contacts. Arguments: number of spheres, time steps.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <vector>

#define APART __attribute__((noinline)) // as if in another file

template <int Dimension> struct Point {
    std::array<double, Dimension> at{};
    APART double distance_squared(const Point &other) const {
        double sum = 0;
        for (int i = 0; i < Dimension; i++)
            sum += (at[i] - other.at[i]) * (at[i] - other.at[i]);
        return sum;
    }
};

class Material {
  public:
    virtual ~Material() = default;
    virtual double stiffness() const = 0;
    virtual double damping(double speed) const = 0;
};

class Elastic : public Material {
  public:
    explicit Elastic(double modulus) : modulus(modulus) {}
    APART double stiffness() const override { return modulus; }
    APART double damping(double) const override { return 0; }

  private:
    double modulus;
};

class Viscous : public Material {
  public:
    Viscous(double modulus, double loss) : modulus(modulus), loss(loss) {}
    APART double stiffness() const override { return modulus; }
    APART double damping(double speed) const override {
        if (speed > 1)
            return loss;
        if (speed < -1)
            return -loss;
        return loss * speed;
    }

  private:
    double modulus, loss;
};

template <int Dimension> struct Ball {
    Point<Dimension> place, speed, force;
    double radius = 0;
    const Material *material = nullptr;
};

struct Linear {
    static APART double force(double overlap, double stiffness) { return overlap > 0 ? stiffness * overlap : 0; }
};
struct Hertz {
    static APART double force(double overlap, double stiffness) {
        return overlap > 0 ? stiffness * overlap * std::sqrt(overlap) : 0;
    }
};

template <int Dimension, class Law> class World {
  public:
    World(int number, int cells) : cells(cells) {
        materials.push_back(std::make_unique<Elastic>(900));
        materials.push_back(std::make_unique<Viscous>(600, 0.3));
        materials.push_back(std::make_unique<Viscous>(1200, 0.1));
        unsigned state = 7;
        for (int i = 0; i < number; i++) {
            Ball<Dimension> ball;
            for (int d = 0; d < Dimension; d++) {
                state = state * 1664525u + 1013904223u;
                ball.place.at[d] = (state >> 8) * 0x1p-24;
                ball.speed.at[d] = ((state >> 4 & 0xffff) * 0x1p-16 - 0.5) * 0.2;
            }
            ball.radius = 0.3 / cells;
            ball.material = materials[i % materials.size()].get();
            balls.push_back(ball);
        }
    }
    void step(double dt) {
        sort();
        for (size_t i = 0; i < balls.size(); i++)
            for (const int near : neighbours(cell_of(balls[i].place)))
                for (const int other : members[static_cast<size_t>(near)])
                    if (static_cast<size_t>(other) > i)
                        touch(static_cast<int>(i), other);
        for (Ball<Dimension> &ball : balls)
            advance(ball, dt);
    }
    double energy() const {
        double sum = 0;
        for (const Ball<Dimension> &ball : balls)
            for (const double v : ball.speed.at)
                sum += v * v;
        return sum;
    }
    size_t contacts() const { return history.size(); }

  private:
    APART int line(double x) const {
        const int found = static_cast<int>(x * cells);
        return found < 0 ? 0 : found >= cells ? cells - 1 : found;
    }
    APART int cell_of(const Point<Dimension> &place) const {
        int cell = 0;
        for (const double x : place.at)
            cell = cell * cells + line(x);
        return cell;
    }
    const std::vector<int> &neighbours(int cell) {
        auto [entry, fresh] = around.try_emplace(cell);
        if (fresh)
            gather(cell, entry->second);
        return entry->second;
    }
    void gather(int cell, std::vector<int> &found) const {
        int total = 1;
        for (int d = 0; d < Dimension; d++)
            total *= 3;
        for (int code = 0; code < total; code++) {
            int rest = code, at = cell, result = 0, scale = 1;
            bool valid = true;
            for (int d = 0; d < Dimension; d++) {
                const int x = at % cells + rest % 3 - 1;
                valid &= x >= 0 && x < cells;
                result += x * scale;
                scale *= cells;
                at /= cells;
                rest /= 3;
            }
            if (valid)
                found.push_back(result);
        }
    }
    void sort() {
        size_t total = 1;
        for (int d = 0; d < Dimension; d++)
            total *= static_cast<size_t>(cells);
        members.resize(total);
        for (auto &list : members)
            list.clear();
        for (size_t i = 0; i < balls.size(); i++)
            members[static_cast<size_t>(cell_of(balls[i].place))].push_back(static_cast<int>(i));
    }
    APART bool overlaps(const Ball<Dimension> &a, const Ball<Dimension> &b) const {
        const double reach = a.radius + b.radius;
        return a.place.distance_squared(b.place) < reach * reach;
    }
    APART double mean_stiffness(const Ball<Dimension> &a, const Ball<Dimension> &b) const {
        const double first = a.material->stiffness(), second = b.material->stiffness();
        return first * second / (first + second);
    }
    void touch(int i, int j) {
        Ball<Dimension> &a = balls[static_cast<size_t>(i)], &b = balls[static_cast<size_t>(j)];
        if (!overlaps(a, b))
            return;
        const double distance = std::sqrt(a.place.distance_squared(b.place)) + 1e-12;
        double closing = 0;
        for (int d = 0; d < Dimension; d++)
            closing += (b.speed.at[d] - a.speed.at[d]) * (b.place.at[d] - a.place.at[d]) / distance;
        const double strength = Law::force(a.radius + b.radius - distance, mean_stiffness(a, b)) -
                                0.5 * (a.material->damping(closing) + b.material->damping(closing));
        for (int d = 0; d < Dimension; d++) {
            const double part = strength * (b.place.at[d] - a.place.at[d]) / distance;
            a.force.at[d] -= part;
            b.force.at[d] += part;
        }
        history[static_cast<long>(i) * 1000003 + j]++;
    }
    APART void reflect(double &place, double &speed) const {
        if (place < 0 || place > 1) {
            place = place < 0 ? -place : 2 - place;
            speed = -speed;
        }
    }
    APART void advance(Ball<Dimension> &ball, double dt) const {
        for (int d = 0; d < Dimension; d++) {
            ball.speed.at[d] += ball.force.at[d] * dt;
            ball.place.at[d] += ball.speed.at[d] * dt;
            ball.force.at[d] = 0;
            reflect(ball.place.at[d], ball.speed.at[d]);
        }
    }

    int cells;
    std::vector<std::unique_ptr<Material>> materials;
    std::vector<Ball<Dimension>> balls;
    std::vector<std::vector<int>> members;
    std::unordered_map<int, std::vector<int>> around;
    std::unordered_map<long, int> history;
};

int main(int argc, char **argv) {
    const int number = argc > 1 ? std::atoi(argv[1]) : 4000, steps = argc > 2 ? std::atoi(argv[2]) : 50;
    World<2, Linear> flat(number, 24);
    World<3, Hertz> solid(number, 10);
    for (int i = 0; i < steps; i++) {
        flat.step(0.001);
        solid.step(0.001);
    }
    std::printf("%.9g %zu %.9g %zu\n", flat.energy(), flat.contacts(), solid.energy(), solid.contacts());
}
