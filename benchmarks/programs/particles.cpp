// SPDX-License-Identifier: Apache-2.0
// Like a DSMC code: particles fly through a box with obstacles, many small geometry functions are called for each of
// them. Arguments: number of particles, time steps.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define APART __attribute__((noinline)) // as if in another file

struct Vector {
    double x, y, z;
    Vector operator+(const Vector &o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vector operator-(const Vector &o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vector operator*(double by) const { return {x * by, y * by, z * by}; }
    double dot(const Vector &o) const { return x * o.x + y * o.y + z * o.z; }
};

struct Particle {
    Vector position, velocity;
    int cell = 0;
};

class Random {
  public:
    explicit Random(uint64_t seed) : state(seed) {}
    APART double next() {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state >> 11) * 0x1p-53;
    }

  private:
    uint64_t state;
};

class Surface {
  public:
    virtual ~Surface() = default;
    virtual bool inside(const Vector &at) const = 0;
    virtual Vector normal(const Vector &at) const = 0;
};

class Sphere : public Surface {
  public:
    Sphere(Vector center, double radius) : center(center), radius(radius) {}
    APART bool inside(const Vector &at) const override {
        const double dx = at.x - center.x, dy = at.y - center.y, dz = at.z - center.z;
        if (dx > radius || dx < -radius)
            return false;
        if (dy > radius || dy < -radius)
            return false;
        return dx * dx + dy * dy + dz * dz < radius * radius;
    }
    APART Vector normal(const Vector &at) const override {
        const Vector out = at - center;
        return out * (1 / std::sqrt(out.dot(out) + 1e-300));
    }

  private:
    Vector center;
    double radius;
};

class Block : public Surface {
  public:
    Block(Vector low, Vector high) : low(low), high(high) {}
    APART bool inside(const Vector &at) const override {
        return at.x > low.x && at.x < high.x && at.y > low.y && at.y < high.y && at.z > low.z && at.z < high.z;
    }
    APART Vector normal(const Vector &at) const override {
        const Vector middle = (low + high) * 0.5;
        if (std::fabs(at.x - middle.x) > std::fabs(at.y - middle.y))
            return {at.x > middle.x ? 1. : -1., 0, 0};
        return {0, at.y > middle.y ? 1. : -1., 0};
    }

  private:
    Vector low, high;
};

class Domain {
  public:
    explicit Domain(int cells) : cells(cells), counts(static_cast<size_t>(cells * cells * cells)) {
        obstacles.push_back(std::make_unique<Sphere>(Vector{0.4, 0.5, 0.5}, 0.15));
        obstacles.push_back(std::make_unique<Block>(Vector{0.7, 0.2, 0.2}, Vector{0.8, 0.6, 0.7}));
        obstacles.push_back(std::make_unique<Sphere>(Vector{0.2, 0.8, 0.3}, 0.1));
    }
    APART int cell_of(const Vector &at) const { return (line(at.x) * cells + line(at.y)) * cells + line(at.z); }
    APART void bounce(double &place, double &speed) const {
        if (place < 0) {
            place = -place;
            speed = -speed;
        } else if (place >= 1) {
            place = 2 - place;
            speed = -speed;
        }
    }
    APART const Surface *hit(const Vector &at) const {
        for (const auto &surface : obstacles)
            if (surface->inside(at))
                return surface.get();
        return nullptr;
    }
    APART void count(int cell, int by) { counts[static_cast<size_t>(cell)] += by; }
    int occupied() const {
        int found = 0;
        for (const int count : counts)
            found += count > 0;
        return found;
    }

  private:
    int line(double x) const { return x < 0 ? 0 : x >= 1 ? cells - 1 : static_cast<int>(x * cells); }
    int cells;
    std::vector<int> counts;
    std::vector<std::unique_ptr<Surface>> obstacles;
};

APART Vector reflected(const Vector &velocity, const Vector &normal) {
    const double along = velocity.dot(normal);
    return along < 0 ? velocity - normal * (2 * along) : velocity;
}

APART void move(Particle &particle, Domain &domain, double dt) {
    Vector next = particle.position + particle.velocity * dt;
    domain.bounce(next.x, particle.velocity.x);
    domain.bounce(next.y, particle.velocity.y);
    domain.bounce(next.z, particle.velocity.z);
    if (const Surface *surface = domain.hit(next))
        particle.velocity = reflected(particle.velocity, surface->normal(next));
    else
        particle.position = next;
    const int cell = domain.cell_of(particle.position);
    if (cell != particle.cell) {
        domain.count(particle.cell, -1);
        domain.count(cell, 1);
        particle.cell = cell;
    }
}

APART bool accepts(const Vector &relative, double chance) { return relative.dot(relative) > chance; }

APART void collide(Particle &a, Particle &b, Random &random) {
    const Vector relative = a.velocity - b.velocity;
    if (a.cell != b.cell || !accepts(relative, random.next()))
        return;
    const double angle = 6.28 * random.next();
    const Vector turned = {relative.x * std::cos(angle), relative.y * std::sin(angle), relative.z};
    const Vector mean = (a.velocity + b.velocity) * 0.5;
    a.velocity = mean + turned * 0.5;
    b.velocity = mean - turned * 0.5;
}

int main(int argc, char **argv) {
    const int number = argc > 1 ? std::atoi(argv[1]) : 20000, steps = argc > 2 ? std::atoi(argv[2]) : 100;
    Random random(17);
    Domain domain(12);
    std::vector<Particle> particles(static_cast<size_t>(number));
    for (Particle &particle : particles) {
        particle.position = {random.next(), random.next(), random.next()};
        particle.velocity = {random.next() - 0.5, random.next() - 0.5, random.next() - 0.5};
        particle.cell = domain.cell_of(particle.position);
        domain.count(particle.cell, 1);
    }
    for (int step = 0; step < steps; step++) {
        for (Particle &particle : particles)
            move(particle, domain, 0.01);
        for (size_t i = 1; i < particles.size(); i += 2)
            collide(particles[i - 1], particles[i], random);
    }
    double energy = 0;
    for (const Particle &particle : particles)
        energy += particle.velocity.dot(particle.velocity);
    std::printf("%.6f %d\n", energy, domain.occupied());
}
