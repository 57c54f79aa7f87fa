// SPDX-License-Identifier: Apache-2.0
// Solves Poisson's equation on n² cells to a tolerance: conjugate gradients, or
// (with a fourth argument) Jacobi iterations and successive overrelaxation. The source is 1, but for a part, the third
// argument, that is random.
#include "random.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Field = std::vector<double>;

struct Grid {
    size_t N;
    size_t at(size_t I, size_t J) const { return (I + 1) * (N + 2) + J + 1; }
    Field field() const { return Field((N + 2) * (N + 2)); }
};

void apply(const Grid &G, const Field &X, Field &Y) {
    const size_t Row = G.N + 2;
    for (size_t I = 0; I < G.N; I++)
        for (size_t J = 0; J < G.N; J++) {
            const size_t At = G.at(I, J);
            Y[At] = 4 * X[At] - X[At - 1] - X[At + 1] - X[At - Row] - X[At + Row];
        }
}

double dot(const Grid &G, const Field &X, const Field &Y) {
    double Sum = 0;
    for (size_t I = 0; I < G.N; I++)
        for (size_t J = 0; J < G.N; J++)
            Sum += X[G.at(I, J)] * Y[G.at(I, J)];
    return Sum;
}

void add(double By, const Field &X, Field &Y) {
    for (size_t At = 0; At < Y.size(); At++)
        Y[At] += By * X[At];
}

int conjugateGradients(const Grid &G, const Field &Right, Field &X) {
    Field Rest = Right;
    Field Direction = Right;
    Field Product = G.field();
    double Square = dot(G, Rest, Rest);
    const double Enough = 1e-16 * Square;
    int Iterations = 0;
    for (; Square > Enough; Iterations++) {
        apply(G, Direction, Product);
        const double Step = Square / dot(G, Direction, Product);
        add(Step, Direction, X);
        add(-Step, Product, Rest);
        const double Before = Square;
        Square = dot(G, Rest, Rest);
        for (size_t At = 0; At < Direction.size(); At++)
            Direction[At] = Rest[At] + Square / Before * Direction[At];
    }
    return Iterations;
}

double jacobi(const Grid &G, const Field &Right, const Field &X, Field &Next) {
    const size_t Row = G.N + 2;
    double Change = 0;
    for (size_t I = 0; I < G.N; I++)
        for (size_t J = 0; J < G.N; J++) {
            const size_t At = G.at(I, J);
            Next[At] = 0.25 * (Right[At] + X[At - 1] + X[At + 1] + X[At - Row] + X[At + Row]);
            Change += (Next[At] - X[At]) * (Next[At] - X[At]);
        }
    return Change;
}

double sweep(const Grid &G, const Field &Right, Field &X, double Relax) {
    const size_t Row = G.N + 2;
    double Change = 0;
    for (size_t I = 0; I < G.N; I++)
        for (size_t J = 0; J < G.N; J++) {
            const size_t At = G.at(I, J);
            const double Better = 0.25 * (Right[At] + X[At - 1] + X[At + 1] + X[At - Row] + X[At + Row]) - X[At];
            X[At] += Relax * Better;
            Change += Better * Better;
        }
    return Change;
}

int byJacobi(const Grid &G, const Field &Right, Field &X) {
    Field Next = G.field();
    int Iterations = 0;
    double First = 0;
    for (double Change = 1; Iterations < 2 || Change > 1e-8 * First; Iterations++) {
        Change = jacobi(G, Right, X, Next);
        First = Iterations ? First : Change;
        X.swap(Next);
    }
    return Iterations;
}

int bySweeps(const Grid &G, const Field &Right, Field &X) {
    int Iterations = 0;
    double First = 0;
    const double Relax = 2 / (1 + std::sin(3.14159265358979 / static_cast<double>(G.N + 1)));
    for (double Change = 1; Iterations < 2 || Change > 1e-16 * First; Iterations++) {
        Change = sweep(G, Right, X, Relax);
        First = Iterations ? First : Change;
    }
    return Iterations;
}

} // namespace

int main(int argc, char **argv) {
    const Grid G{std::strtoull(argv[1], nullptr, 10)};
    Random Next(std::strtoull(argv[2], nullptr, 10));
    const double Chance = argc > 3 ? std::strtod(argv[3], nullptr) : 0.01;
    const bool Stationary = argc > 4;
    Field Right = G.field();
    for (size_t I = 0; I < G.N; I++)
        for (size_t J = 0; J < G.N; J++)
            Right[G.at(I, J)] = 1 - Chance + Chance * Next.unit();
    Field X = G.field();
    Field Y = G.field();
    if (Stationary)
        std::printf("%d %d\n", byJacobi(G, Right, X), bySweeps(G, Right, Y));
    else
        std::printf("%d\n", conjugateGradients(G, Right, X));
}
