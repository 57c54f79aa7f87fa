// SPDX-License-Identifier: Apache-2.0
// Common code of all generated functions: sizes, data with known contents, steps of computation, and verification.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mpi.h>
#include <vector>

namespace generated {

using Element = std::uint32_t;

// The options of a run. `p` is the number of ranks that determines the sizes: the size of the communicator, except if
// one process computes as a rank of a larger job.
struct Run {
    double p = 1;
    double n = 1;
    int rank = 0;
    int ranks = 1;
    bool communicates = true;
    bool computes = true;
};

// Returns the size of a loop or message: the nearest whole number, at least 1.
inline std::uint64_t rounded(double size) { return size < 1.5 ? 1 : static_cast<std::uint64_t>(size + 0.5); }

// Returns the first iteration of part `index`, if `total` iterations are divided into `parts` parts as evenly as
// possible.
inline std::uint64_t share(std::uint64_t index, std::uint64_t parts, std::uint64_t total) {
    return index * (total / parts) + index * (total % parts) / parts;
}

enum class Operation { none, barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, send_recv };

// The data of one function on one rank: send and receive buffers. Element i of rank r is a known number, so that every
// rank can verify the received data.
struct Data {
    Data(const Run &run, Operation operation, std::size_t elements);
    // The number of wrong elements in the received data.
    [[nodiscard]] std::uint64_t wrong(const Run &run) const;
    // The array for the computation.
    [[nodiscard]] const std::vector<Element> &operand() const;

    Operation operation;
    std::size_t elements;
    std::vector<Element> mine;
    std::vector<Element> theirs;
};

// The first elements of an array (a power of two), read cyclically; they stay in the first-level cache.
struct Window {
    static constexpr std::size_t largest = 4096;
    explicit Window(const Data &data);
    [[nodiscard]] std::uint64_t operator[](std::uint64_t index) const { return first[index & mask]; }

    const Element *first;
    std::uint64_t mask;
};

// Synchronizes the ranks, so that the time of a function does not contain waiting for the previous function.
void synchronize();

// Steps x -> a·x + b modulo 2^64, with coefficients from the window: each step needs the previous result.
struct Addition {
    static std::uint64_t factor(std::uint64_t /*element*/) { return 1; }
    static std::uint64_t summand(std::uint64_t element) { return element; }
    void step(std::uint64_t element) { value += element; }
    std::uint64_t value = 1;
};
struct Multiplication {
    static std::uint64_t factor(std::uint64_t element) { return 2 * element + 1; }
    static std::uint64_t summand(std::uint64_t /*element*/) { return 0; }
    void step(std::uint64_t element) { value *= 2 * element + 1; }
    std::uint64_t value = 1;
};
struct MultiplyAdd {
    static constexpr std::uint64_t multiplier = 6364136223846793005ULL;
    static std::uint64_t factor(std::uint64_t /*element*/) { return multiplier; }
    static std::uint64_t summand(std::uint64_t element) { return element; }
    void step(std::uint64_t element) { value = value * multiplier + element; }
    std::uint64_t value = 1;
};
// A step x -> x/2 + b of floating-point numbers.
struct Relaxation {
    void step(std::uint64_t element) { value = 0.5 * value + static_cast<double>(element); }
    double value = 1;
};

// The map x -> factor·x + summand modulo 2^64. `then` returns the composition of two maps.
struct Affine {
    [[nodiscard]] Affine then(const Affine &next) const {
        return {factor * next.factor, summand * next.factor + next.summand};
    }
    std::uint64_t factor = 1;
    std::uint64_t summand = 0;
};
[[nodiscard]] Affine power(Affine map, std::uint64_t times);

// Returns whether `found` is the result of `steps` steps, from the map of one cycle of the window to the power of
// cycles.
template <typename Step> [[nodiscard]] bool right(const Step &found, const Window &window, std::uint64_t steps) {
    Affine round;
    Affine rest;
    for (std::uint64_t index = 0; index <= window.mask; index++) {
        const Affine one{Step::factor(window[index]), Step::summand(window[index])};
        round = round.then(one);
        rest = index < (steps & window.mask) ? rest.then(one) : rest;
    }
    const Affine all = power(round, steps / (window.mask + 1)).then(rest);
    return found.value == all.factor * Step{}.value + all.summand;
}
// Only the last steps have an effect, because each step halves the value.
[[nodiscard]] bool right(const Relaxation &found, const Window &window, std::uint64_t steps);

// The errors of one function: number of wrong elements, and whether the computation is wrong.
struct Errors {
    std::uint64_t elements = 0;
    std::uint64_t computations = 0;
};

struct Function {
    const char *name;
    Errors (*run)(const Run &);
};
extern const std::vector<Function> functions;

} // namespace generated
