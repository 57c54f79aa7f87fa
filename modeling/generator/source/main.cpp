// SPDX-License-Identifier: Apache-2.0
// Runs the generated functions and verifies what they computed and communicated.
#include "generated.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace {

struct Options {
    double n = 0;
    long as_ranks = 0;
    std::size_t first = 0;
    std::size_t last = generated::functions.size();
    bool communicates = true;
    bool computes = true;
};

[[noreturn]] void refuse(int rank, const char *program, const char *fault) {
    if (rank == 0) {
        std::fprintf(stderr,
                     "%s: %s\n"
                     "usage: %s N [--only computation|communication] [--as-ranks P] [--functions FIRST:LAST]\n"
                     "  N            problem size, 1 to 1e12\n"
                     "  --as-ranks   one process computes what each of P ranks would compute, without communication\n"
                     "  --functions  numbers of the functions to run, from 0; LAST is not run\n",
                     program, fault, program);
    }
    MPI_Finalize();
    std::exit(2);
}

bool whole(const char *text, const char *end, unsigned long &value) {
    char *after = nullptr;
    value = *text >= '0' && *text <= '9' ? std::strtoul(text, &after, 10) : 0;
    return after == end && after != nullptr;
}

Options parse(std::span<char *> arguments, int rank, int ranks) {
    Options options;
    const char *program = arguments[0];
    unsigned long number = 0;
    if (arguments.size() < 2 || arguments.size() % 2 != 0) {
        refuse(rank, program, "wrong number of arguments");
    }
    if (!whole(arguments[1], arguments[1] + std::strlen(arguments[1]), number) || number < 1 ||
        number > 1000000000000) {
        refuse(rank, program, "N is not a whole number from 1 to 1e12");
    }
    options.n = static_cast<double>(number);
    for (std::size_t index = 2; index < arguments.size(); index += 2) {
        const char *name = arguments[index];
        const char *value = arguments[index + 1];
        const char *end = value + std::strlen(value);
        if (std::strcmp(name, "--only") == 0 && std::strcmp(value, "computation") == 0) {
            options.communicates = false;
        } else if (std::strcmp(name, "--only") == 0 && std::strcmp(value, "communication") == 0) {
            options.computes = false;
        } else if (std::strcmp(name, "--as-ranks") == 0) {
            if (!whole(value, end, number) || number < 1 || number > 1000000000 || ranks != 1) {
                refuse(rank, program, "--as-ranks needs a number of ranks, and one process");
            }
            options.as_ranks = static_cast<long>(number);
        } else if (std::strcmp(name, "--functions") == 0) {
            const char *colon = std::strchr(value, ':');
            unsigned long last = 0;
            if (colon == nullptr || !whole(value, colon, number) || !whole(colon + 1, end, last) || number >= last ||
                last > generated::functions.size()) {
                refuse(rank, program, "--functions needs FIRST:LAST within the functions there are");
            }
            options.first = number;
            options.last = last;
        } else {
            refuse(rank, program, "unknown option or value");
        }
    }
    return options;
}

// Libraries create connections and buffers at first use; this call keeps their time out of the functions.
void warm_up(const generated::Run &run) {
    if (run.communicates) {
        int value = 0;
        MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    generated::Run run;
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    const Options options = parse({argv, static_cast<std::size_t>(argc)}, run.rank, run.ranks);
    run.n = options.n;
    run.p = static_cast<double>(options.as_ranks > 0 ? options.as_ranks : run.ranks);
    run.communicates = options.communicates && options.as_ranks == 0;
    run.computes = options.computes;

    warm_up(run);
    generated::Errors errors;
    for (std::size_t index = options.first; index < options.last; index++) {
        const generated::Errors own = generated::functions[index].run(run);
        if (own.elements + own.computations > 0) {
            std::fprintf(stderr, "%s on rank %d: %llu elements and %llu computations are wrong\n",
                         generated::functions[index].name, run.rank, static_cast<unsigned long long>(own.elements),
                         static_cast<unsigned long long>(own.computations));
        }
        errors.elements += own.elements;
        errors.computations += own.computations;
    }
    unsigned long long wrong = errors.elements + errors.computations;
    unsigned long long total = 0;
    MPI_Allreduce(&wrong, &total, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (run.rank == 0) {
        std::printf("generated functions=%zu ranks=%.0f n=%.0f errors=%llu %s\n", options.last - options.first, run.p,
                    run.n, total, total == 0 ? "verified" : "WRONG");
    }
    MPI_Finalize();
    return total == 0 ? 0 : 1;
}
