// SPDX-License-Identifier: Apache-2.0
// Call paths of every kind, for a profile in which only some of them find room: recursion, longjmp, exceptions, quiet
// functions, functions that the compiler inlines, loops with counters of their own.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#define KEEP __attribute__((noinline))

static jmp_buf place;
static volatile int sink;

KEEP static int small(int n) { return sink + n; }

static void inlined(int n) {
    for (int i = 0; i < n; i++)
        if (i % 2)
            sink = sink + 1;
}

KEEP static void loop(int n) {
    inlined(n / 2);
    for (int i = 0; i < n; i++)
        if (i % 3)
            sink = sink + 1;
}

KEEP static void leave(int n) {
    loop(n);
    if (n % 2)
        throw n;
    longjmp(place, 1);
}

template <int number> KEEP int step(int depth) {
    loop(number % 5);
    if (depth > 0) {
        step<(number + 7) % 60>(depth - 1);
        if (depth % 3 == 0)
            loop(depth);
        try {
            if (depth % 7 == 0 && setjmp(place) == 0)
                leave(depth);
        } catch (int) {
            loop(2);
        }
    }
    return small(number);
}

template <int number> KEEP void all(int depth) {
    step<number>(depth);
    if constexpr (number > 0)
        all<number - 1>(depth);
}

int main(int argc, char **argv) {
    const int depth = argc > 1 ? atoi(argv[1]) : 10;
    for (int i = 0; i <= depth; i++)
        all<59>(i);
    printf("%d\n", sink);
}
