/* SPDX-License-Identifier: Apache-2.0 */
// Work shared by teams of threads in every way that leaves the counts the same in every run.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static long work(long n) {
    long s = 0;
    for (long i = 0; i < n; i++)
        if ((i * 7) % 3)
            s += i;
    return s;
}

__attribute__((noinline)) static long loop(int n) {
    long s = 0;
#pragma omp parallel for schedule(static) reduction(+ : s)
    for (int i = 0; i < n; i++)
        s += work(i);
    return s;
}

__attribute__((noinline)) static long phases(int n) {
    long s = 0;
#pragma omp parallel num_threads(3)
    {
        long own = work(n);
#pragma omp barrier
#pragma omp critical
        s += own;
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++)
            work(i);
    }
    return s;
}

__attribute__((noinline)) static long tasks(int n) {
    long s = 0;
#pragma omp parallel
#pragma omp single
    {
        for (int i = 0; i < n; i++) {
#pragma omp task shared(s)
            {
                long own = work(10 * i);
#pragma omp atomic
                s += own;
            }
        }
#pragma omp taskwait
    }
    return s;
}

__attribute__((noinline)) static long fibonacci(int n) {
    if (n < 2)
        return n;
    long a, b;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
#pragma omp task shared(b)
    b = fibonacci(n - 2);
#pragma omp taskwait
    return a + b;
}

__attribute__((noinline)) static long nested(int n) {
    long s = 0;
#pragma omp parallel num_threads(2) reduction(+ : s)
    {
#pragma omp parallel num_threads(2) reduction(+ : s)
        s += work(n * (1 + omp_get_thread_num()));
    }
    return s;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 20;
    long f;
    printf("%ld ", loop(n));
    printf("%ld ", phases(n));
    printf("%ld ", tasks(n));
#pragma omp parallel
#pragma omp single
    f = fibonacci(10);
    printf("%ld ", f);
    omp_set_max_active_levels(2);
    printf("%ld ", nested(n));
    printf("%ld\n", loop(n / 2));
    return 0;
}
