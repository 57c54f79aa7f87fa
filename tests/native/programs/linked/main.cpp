// SPDX-License-Identifier: Apache-2.0
// The program: calls over the border of files or libraries, leaves loops of the library by exceptions.
#include "shapes.h"

#include <cstdio>
#include <cstdlib>

static long visited;

static void stop_at_ten(int i) {
    visited += collatz(i + 1);
    if (i == 10)
        throw i;
}

__attribute__((noinline)) static int catches(int n) {
    int caught = 0;
    for (int kind = 0; kind < 2; kind++) {
        Shape *shape = make_shape(kind);
        try {
            visited += (long)integrate(*shape, n);
        } catch (const TooManySteps &error) {
            caught += error.steps;
        }
        delete shape;
    }
    try {
        for_each(n, stop_at_ten);
    } catch (int i) {
        caught += i;
    }
    return caught;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 60;
    int caught = catches(n) + catches(n / 2);
    printf("%d %ld\n", caught, visited);
    return 0;
}
