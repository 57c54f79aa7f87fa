// SPDX-License-Identifier: Apache-2.0
// Threads that come and go, one after the other and at once.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

__attribute__((noinline, optnone)) long work(int n) {
    long s = 0;
    for (int i = 0; i < n; i++)
        s += i;
    return s;
}

__attribute__((noinline, optnone)) int main(int argc, char **argv) {
    int at_once = argc > 1 ? atoi(argv[1]) : 4;
    for (int i = 0; i < 10; i++)
        std::thread(work, 100).join();
    std::vector<std::thread> threads;
    for (int i = 0; i < at_once; i++)
        threads.emplace_back(work, 1000);
    for (std::thread &thread : threads)
        thread.join();
    printf("%ld\n", work(10));
}
