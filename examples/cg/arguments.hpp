// SPDX-License-Identifier: Apache-2.0
// The command line.
#pragma once

#include "solver.hpp"

#include <cstddef>
#include <string>

namespace cg {

struct Arguments {
    std::size_t n = 0;
    std::size_t planes = 0;
    Limits limits{0, 0.0};
    std::string preconditioner = "jacobi";
};

extern const char usage[];

// Throws UsageError that names the argument at fault.
Arguments parse_arguments(int argc, char **argv);

} // namespace cg
