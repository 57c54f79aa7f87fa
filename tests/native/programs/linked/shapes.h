/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct Shape {
    virtual ~Shape() = default;
    virtual double area(int steps) const = 0;
};

struct TooManySteps {
    int steps;
};

/// Throws TooManySteps for more than 50 steps.
double integrate(const Shape &shape, int steps);
Shape *make_shape(int kind);
/// Calls back for every number below n; whatever it throws passes through.
void for_each(int n, void (*visit)(int));
extern "C" long collatz(long n);
