/* SPDX-License-Identifier: Apache-2.0 */
__attribute__((noinline)) static long step(long i) {
    long s = 0;
    while (i > 0) {
        s += i & 1;
        i >>= 1;
    }
    return s;
}

long work(int n) {
    long s = 0;
    for (int i = 0; i < n; i++)
        s += step(i);
    return s;
}
