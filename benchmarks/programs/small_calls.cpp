// SPDX-License-Identifier: Apache-2.0
// A small function with several ways through it, called as often as the argument says.
#include <cstdio>
#include <cstdlib>

struct Vector {
    double x, y, z;
};

__attribute__((noinline)) bool inside(const Vector &a, const Vector &b, double r) {
    const double dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    if (dx > r || dx < -r)
        return false;
    if (dy > r || dy < -r)
        return false;
    return dx * dx + dy * dy + dz * dz < r * r;
}

int main(int argc, char **argv) {
    const long calls = argc > 1 ? std::atol(argv[1]) : 100000000;
    const Vector center{0, 0, 0};
    long found = 0;
    for (long i = 0; i < calls; i++)
        found += inside(center, {static_cast<double>(i & 7) * .1, static_cast<double>(i & 15) * .1, .2}, 1.);
    std::printf("%ld\n", found);
}
