/* SPDX-License-Identifier: Apache-2.0 */
// The same names as in first.c, other work.
__attribute__((noinline)) static long step(long i) {
    long s = 0;
    for (long k = 0; k < i; k++)
        if ((k * k) % 7 < 3)
            s += k;
        else if (k % 5 == 0)
            s ^= i;
    return s;
}

long work(int n) {
    long s = 1;
    for (int i = n; i > 0; i -= 3)
        s = s * 31 + step(i);
    return s;
}
