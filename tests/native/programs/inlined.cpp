// SPDX-License-Identifier: Apache-2.0
// Code that is inlined, from this file and from a header, into one function; a small function without a hook.
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Grid {
    std::vector<double> values;
    long n;
    double &at(long i, long j) { return values[static_cast<std::size_t>(i * n + j)]; }
};

static inline double square(double x) {
    return x * x; // one flop
}

__attribute__((noinline)) double tiny(double x) { return 0.5 * x; }

__attribute__((noinline)) double sweep(Grid &grid) {
    asm volatile("" ::: "memory"); // never the same sweep
    double sum = 0;
    for (long i = 0; i < grid.n; i++)
        for (long j = 0; j < grid.n; j++)
            if ((i ^ j) & 1)
                sum += square(grid.at(i, j)); // and one more
    return tiny(sum);
}

int main(int argc, char **argv) {
    const long n = argc > 1 ? std::atol(argv[1]) : 10;
    Grid grid{std::vector<double>(static_cast<std::size_t>(n * n), 2.0), n};
    double total = 0;
    for (int step = 0; step < 3; step++)
        total += sweep(grid);
    std::printf("%g\n", total);
    return 0;
}
