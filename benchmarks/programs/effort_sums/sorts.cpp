// SPDX-License-Identifier: Apache-2.0
// Sorts arrays of n random numbers, each in five ways.
#include "random.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Numbers = std::vector<double>;
constexpr int Arrays = 32;

/** Hoare's partition: what is before the result is at most the pivot, and the rest at least. */
size_t partition(Numbers &X, size_t First, size_t End) {
    const double Pivot = X[First + (End - 1 - First) / 2];
    size_t Low = First;
    size_t High = End - 1;
    for (;; Low++, High--) {
        while (X[Low] < Pivot)
            Low++;
        while (X[High] > Pivot)
            High--;
        if (Low >= High)
            return High + 1;
        std::swap(X[Low], X[High]);
    }
}

void quicksort(Numbers &X, size_t First, size_t End) {
    if (End - First < 2)
        return;
    const size_t Middle = partition(X, First, End);
    quicksort(X, First, Middle);
    quicksort(X, Middle, End);
}

void merge(Numbers &X, Numbers &Space, size_t First, size_t Middle, size_t End) {
    size_t Left = First;
    size_t Right = Middle;
    for (size_t To = First; To < End; To++)
        Space[To] = Left < Middle && (Right == End || X[Left] <= X[Right]) ? X[Left++] : X[Right++];
    std::copy(Space.begin() + First, Space.begin() + End, X.begin() + First);
}

void mergesort(Numbers &X, Numbers &Space, size_t First, size_t End) {
    if (End - First < 2)
        return;
    const size_t Middle = First + (End - First) / 2;
    mergesort(X, Space, First, Middle);
    mergesort(X, Space, Middle, End);
    merge(X, Space, First, Middle, End);
}

void sink(Numbers &X, size_t At, size_t End) {
    for (size_t Child = 2 * At + 1; Child < End; Child = 2 * At + 1) {
        if (Child + 1 < End && X[Child + 1] > X[Child])
            Child++;
        if (X[At] >= X[Child])
            return;
        std::swap(X[At], X[Child]);
        At = Child;
    }
}

void heapsort(Numbers &X) {
    for (size_t At = X.size() / 2; At-- > 0;)
        sink(X, At, X.size());
    for (size_t End = X.size(); End-- > 1;) {
        std::swap(X[0], X[End]);
        sink(X, 0, End);
    }
}

void shellsort(Numbers &X) {
    for (size_t Gap = X.size() / 2; Gap > 0; Gap = Gap == 2 ? 1 : static_cast<size_t>(static_cast<double>(Gap) / 2.25))
        for (size_t I = Gap; I < X.size(); I++) {
            const double Value = X[I];
            size_t J = I;
            for (; J >= Gap && X[J - Gap] > Value; J -= Gap)
                X[J] = X[J - Gap];
            X[J] = Value;
        }
}

/** What one array after the other goes through, and a sum that needs all of it. */
double process(size_t N, Random &Next) {
    Numbers X(N);
    for (double &Value : X)
        Value = Next.unit();
    double Sum = 0;
    for (int Kind = 0; Kind < 5; Kind++) {
        Numbers Y = X;
        Numbers Space(N);
        switch (Kind) {
        case 0:
            quicksort(Y, 0, N);
            break;
        case 1:
            mergesort(Y, Space, 0, N);
            break;
        case 2:
            heapsort(Y);
            break;
        case 3:
            shellsort(Y);
            break;
        default:
            std::sort(Y.begin(), Y.end());
        }
        Sum += Y[N / 3];
    }
    return Sum;
}

} // namespace

int main(int argc, char **argv) {
    const size_t N = std::strtoull(argv[1], nullptr, 10);
    Random Next(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
    double Sum = 0;
    for (int Array = 0; Array < Arrays; Array++)
        Sum += process(N, Next);
    std::printf("%.9g\n", Sum);
}
