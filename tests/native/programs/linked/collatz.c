/* SPDX-License-Identifier: Apache-2.0 */
long collatz(long n) {
    long steps = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}
