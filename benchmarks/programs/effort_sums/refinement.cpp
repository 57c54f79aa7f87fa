// SPDX-License-Identifier: Apache-2.0
// Refines: a quadtree of n random points, adaptive quadrature to a tolerance of 1/n², and a front that moves.
#include "random.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

struct Point {
    double X, Y;
};

struct Cell {
    double X, Y, Half;
    std::vector<Point> Inside;
    std::unique_ptr<Cell> Part[4];

    bool divided() const { return Part[0] != nullptr; }
    Cell &of(const Point &P) { return *Part[(P.X > X) + 2 * (P.Y > Y)]; }
};

void insert(Cell &C, const Point &P);

void divide(Cell &C) {
    const double H = C.Half / 2;
    for (int I = 0; I < 4; I++)
        C.Part[I].reset(new Cell{C.X + (I % 2 ? H : -H), C.Y + (I / 2 ? H : -H), H, {}, {}});
    for (const Point &P : C.Inside)
        insert(C.of(P), P);
    C.Inside.clear();
}

void insert(Cell &C, const Point &P) {
    if (C.divided()) {
        insert(C.of(P), P);
        return;
    }
    C.Inside.push_back(P);
    if (C.Inside.size() > 4)
        divide(C);
}

size_t near(const Cell &C, const Point &P, double Radius) {
    if (std::fabs(C.X - P.X) > C.Half + Radius || std::fabs(C.Y - P.Y) > C.Half + Radius)
        return 0;
    size_t Found = 0;
    if (C.divided())
        for (const auto &Part : C.Part)
            Found += near(*Part, P, Radius);
    for (const Point &Q : C.Inside)
        Found += (Q.X - P.X) * (Q.X - P.X) + (Q.Y - P.Y) * (Q.Y - P.Y) < Radius * Radius;
    return Found;
}

double curve(double X) { return 1 / (X * X + 1e-4); }

double quadrature(double A, double B, double Left, double Middle, double Right, double Enough) {
    const double M = (A + B) / 2;
    const double First = curve((A + M) / 2);
    const double Second = curve((M + B) / 2);
    const double Coarse = (B - A) / 6 * (Left + 4 * Middle + Right);
    const double Fine = (B - A) / 12 * (Left + 4 * First + 2 * Middle + 4 * Second + Right);
    if (std::fabs(Fine - Coarse) < Enough)
        return Fine;
    return quadrature(A, M, Left, First, Middle, Enough / 2) + quadrature(M, B, Middle, Second, Right, Enough / 2);
}

} // namespace

int main(int argc, char **argv) {
    const size_t N = std::strtoull(argv[1], nullptr, 10);
    Random Next(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
    Cell Root{0.5, 0.5, 0.5, {}, {}};
    std::vector<Point> Points(N);
    for (Point &P : Points) {
        P = {Next.unit(), Next.unit()};
        insert(Root, P);
    }
    size_t Found = 0;
    for (const Point &P : Points)
        Found += near(Root, P, 1 / std::sqrt(static_cast<double>(N)));
    const double A = -1 - Next.unit();
    const double B = 1 + Next.unit();
    const double Enough = 1 / static_cast<double>(N) / static_cast<double>(N);
    std::printf("%zu %.9g\n", Found, quadrature(A, B, curve(A), curve((A + B) / 2), curve(B), Enough));
}
