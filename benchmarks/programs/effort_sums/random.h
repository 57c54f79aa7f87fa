/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUIPU_BENCHMARKS_RANDOM_H
#define QUIPU_BENCHMARKS_RANDOM_H

#include <cstdint>

/** The generator xorshift64* (Vigna, ACM Transactions on Mathematical Software 42, 2016). */
struct Random {
    uint64_t State;
    explicit Random(uint64_t Seed) : State((Seed + 1) * 0x9E3779B97F4A7C15u) {}
    uint64_t operator()() {
        State ^= State >> 12;
        State ^= State << 25;
        State ^= State >> 27;
        return State * 0x2545F4914F6CDD1Du;
    }
    double unit() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
};

#endif
