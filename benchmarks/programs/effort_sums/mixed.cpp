// SPDX-License-Identifier: Apache-2.0
// Forces of all pairs of n particles, after a sort and binary searches: 3·n² and n·log2(n) in one function.
#include "random.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char **argv) {
    const size_t N = std::strtoull(argv[1], nullptr, 10);
    Random Next(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
    std::vector<double> X(N);
    for (double &Value : X)
        Value = Next.unit();
    double Sum = 0;
    for (int Step = 0; Step < 20; Step++) {
        // a heap, by hand, so that all is work of this function
        for (size_t End = 2 * N; End-- > 1;) {
            if (End < N)
                std::swap(X[0], X[End]);
            const size_t Last = End < N ? End : N;
            size_t At = End < N ? 0 : End - N;
            for (size_t Child = 2 * At + 1; Child < Last; Child = 2 * At + 1) {
                if (Child + 1 < Last && X[Child + 1] > X[Child])
                    Child++;
                if (X[At] >= X[Child])
                    break;
                std::swap(X[At], X[Child]);
                At = Child;
            }
        }
        for (size_t I = 0; I < N; I++) {
            const double Wanted = Next.unit();
            size_t First = 0;
            for (size_t Left = N; Left > 0;) {
                const size_t Half = Left / 2;
                if (X[First + Half] < Wanted) {
                    First += Half + 1;
                    Left -= Half + 1;
                } else
                    Left = Half;
            }
            Sum += static_cast<double>(First);
        }
        for (double &Value : X)
            Value = Next.unit();
    }
    for (size_t I = 0; I < N; I++)
        for (size_t J = 0; J < I; J++)
            Sum += 1 / (std::fabs(X[I] - X[J]) + 0.01);
    std::printf("%.9g\n", Sum);
}
