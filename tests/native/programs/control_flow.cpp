// SPDX-License-Identifier: Apache-2.0
// Every way to leave a function, with the number of calls known: recursion, exceptions, longjmp, exit in a callee.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#define KEEP __attribute__((noinline, optnone))

static jmp_buf back;

KEEP int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

KEEP bool odd(int n);
KEEP bool even(int n) { return n == 0 || odd(n - 1); }
KEEP bool odd(int n) { return n != 0 && even(n - 1); }

KEEP void throws(int depth) {
    if (depth == 0)
        throw std::runtime_error("at the bottom");
    throws(depth - 1);
}

KEEP int catches() {
    try {
        throws(4);
    } catch (const std::exception &) {
        return 1;
    }
    return 0;
}

KEEP void inner_jump(int times) {
    for (int i = 0; i < times; i++) {
    }
    longjmp(back, times);
}

KEEP void outer_jump(int times) { inner_jump(times); }

KEEP void after_jump() {}

KEEP int jumps() {
    int times = setjmp(back);
    if (times < 3)
        outer_jump(times + 1);
    after_jump();
    return times;
}

KEEP void leaves() { exit(7); }

KEEP int main() {
    printf("%d %d %d %d\n", fibonacci(10), even(9), catches(), jumps());
    fflush(stdout);
    leaves();
}
