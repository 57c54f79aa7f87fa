/* SPDX-License-Identifier: Apache-2.0 */
// Threads that create threads, a pool that is created once and used from several places, and threads without work.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static long work(long n) {
    long s = 0;
    for (long i = 0; i < n; i++)
        if ((i * 7) % 3)
            s += i;
    return s;
}

__attribute__((noinline)) static void *leaf(void *argument) { return (void *)work((long)argument); }

__attribute__((noinline)) static void *branch(void *argument) {
    pthread_t child;
    long n = (long)argument;
    pthread_create(&child, NULL, leaf, (void *)(10 * n));
    void *result;
    pthread_join(child, &result);
    return (void *)((long)result + work(n));
}

static void *idle(void *argument) { return argument; }

__attribute__((noinline)) static long start(int threads) {
    pthread_t ids[16];
    long sum = 0;
    for (long i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, i == 0 ? idle : branch, (void *)(100 * i));
    for (int i = 0; i < threads; i++) {
        void *result;
        pthread_join(ids[i], &result);
        sum += (long)result;
    }
    return sum;
}

__attribute__((noinline)) static long again(int threads) { return start(threads) + work(5); }

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 4;
    printf("%ld\n", start(threads) + again(threads));
    return 0;
}
