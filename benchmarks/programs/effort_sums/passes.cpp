// SPDX-License-Identifier: Apache-2.0
// Passes over n elements whose number rises in steps: merges of sorted runs, digits of keys, doubled sizes and strides.
#include "random.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Numbers = std::vector<double>;

/** Sorts runs of 24 by insertion, then merges them, two at a time. */
void insertion(Numbers &X, size_t First, size_t End) {
    for (size_t I = First + 1; I < End; I++)
        for (size_t J = I; J > First && X[J - 1] > X[J]; J--)
            std::swap(X[J - 1], X[J]);
}

void mergePass(const Numbers &X, Numbers &Space, size_t Run) {
    for (size_t First = 0; First < X.size(); First += 2 * Run) {
        const size_t Middle = std::min(First + Run, X.size()), End = std::min(First + 2 * Run, X.size());
        size_t Left = First, Right = Middle;
        for (size_t To = First; To < End; To++) {
            const bool OfLeft = Right == End || (Left < Middle && X[Left] <= X[Right]);
            Space[To] = X[OfLeft ? Left : Right];
            Left += OfLeft;
            Right += !OfLeft;
        }
    }
}

void mergesort(Numbers &X) {
    Numbers Space(X.size());
    for (size_t First = 0; First < X.size(); First += 24)
        insertion(X, First, std::min(First + 24, X.size()));
    for (size_t Run = 24; Run < X.size(); Run *= 2) {
        mergePass(X, Space, Run);
        X.swap(Space);
    }
}

/** Sums of all elements before, with strides that double. */
void prefixSums(Numbers &X) {
    for (size_t Stride = 1; Stride < X.size(); Stride *= 2)
        for (size_t I = X.size() - 1; I >= Stride; I--)
            X[I] += X[I - Stride];
}

/** The Walsh transform of X, with zeros up to a power of two. */
void walsh(Numbers &X) {
    size_t Length = 1;
    while (Length < X.size())
        Length *= 2;
    X.resize(Length);
    for (size_t Half = 1; Half < Length; Half *= 2)
        for (size_t I = 0; I < Length; I++)
            if (!(I & Half)) {
                const double Sum = X[I] + X[I + Half];
                X[I + Half] = X[I] - X[I + Half];
                X[I] = Sum;
            }
}

/** Sorts numbers below n by their hexadecimal digits. */
void byDigits(std::vector<size_t> &X) {
    std::vector<size_t> Space(X.size());
    for (size_t Place = 1; Place < X.size(); Place *= 16) {
        size_t First[17] = {};
        for (const size_t Key : X)
            First[Key / Place % 16 + 1]++;
        for (int Digit = 0; Digit < 16; Digit++)
            First[Digit + 1] += First[Digit];
        for (const size_t Key : X)
            Space[First[Key / Place % 16]++] = Key;
        X.swap(Space);
    }
}

/** Copies what there is to four times the space whenever there is none left; begins with 12. */
double grow(const Numbers &X) {
    Numbers Own(12);
    size_t Size = 0;
    for (const double Value : X) {
        if (Size == Own.size()) {
            Numbers Larger(4 * Size);
            for (size_t I = 0; I < Size; I++)
                Larger[I] = Own[I];
            Own.swap(Larger);
        }
        Own[Size++] = Value;
    }
    return Own[Size / 2];
}

/** The last element that is at most each key, always with as many halvings. */
size_t lookUp(const Numbers &Sorted, const Numbers &Keys) {
    size_t Sum = 0;
    for (const double Key : Keys) {
        size_t First = 0;
        for (size_t Left = Sorted.size(); Left > 1; Left -= Left / 2)
            First += Sorted[First + Left / 2] <= Key ? Left / 2 : 0;
        Sum += First;
    }
    return Sum;
}

} // namespace

int main(int argc, char **argv) {
    const size_t N = std::strtoull(argv[1], nullptr, 10);
    Random Next(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0);
    Numbers X(N);
    std::vector<size_t> Keys(N);
    for (double &Value : X)
        Value = Next.unit();
    for (size_t &Key : Keys)
        Key = Next() % N;
    const Numbers Values = X;
    mergesort(X);
    byDigits(Keys);
    double Sum = static_cast<double>(lookUp(X, Values) + Keys[N / 2]) + grow(Values);
    Numbers Y = Values;
    prefixSums(Y);
    walsh(X);
    std::printf("%.9g\n", Sum + Y[N / 2] + X[N / 2]);
}
