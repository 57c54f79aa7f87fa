// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include "errors.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace cg {

const char usage[] =
    "usage: cg N ITERATIONS [--planes PLANES] [--preconditioner none|jacobi] [--tolerance T]\n"
    "  N           points per dimension (2 to 1000): every rank has N planes of N x N points\n"
    "  ITERATIONS  of the solver (1 to 100000); the number done if T is 0\n"
    "  PLANES      planes per rank instead of N (1 to 1000)\n"
    "  T           stop at this relative residual, and fail if it is not reached (0 to 1, default 0)\n";

namespace {

int parse_integer(const char *name, std::string_view text, int low, int high) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
        throw UsageError(std::string("wrong ") + name + " '" + std::string(text) + "'");
    return value;
}

double parse_tolerance(const char *text) {
    char *end = nullptr;
    errno = 0;
    const double value = std::strtod(text, &end);
    if (end == text || *end != '\0' || errno == ERANGE || !(value >= 0 && value < 1))
        throw UsageError(std::string("wrong T '") + text + "'");
    return value;
}

} // namespace

Arguments parse_arguments(int argc, char **argv) {
    if (argc < 3)
        throw UsageError("N and ITERATIONS are missing");
    Arguments arguments;
    arguments.n = static_cast<std::size_t>(parse_integer("N", argv[1], 2, 1000));
    arguments.planes = arguments.n;
    arguments.limits.iterations = parse_integer("ITERATIONS", argv[2], 1, 100000);
    for (int i = 3; i < argc; i += 2) {
        const std::string_view option = argv[i];
        if (i + 1 == argc)
            throw UsageError("'" + std::string(option) + "' has no value");
        if (option == "--planes")
            arguments.planes = static_cast<std::size_t>(parse_integer("PLANES", argv[i + 1], 1, 1000));
        else if (option == "--preconditioner")
            arguments.preconditioner = argv[i + 1];
        else if (option == "--tolerance")
            arguments.limits.tolerance = parse_tolerance(argv[i + 1]);
        else
            throw UsageError("unknown option '" + std::string(option) + "'");
    }
    return arguments;
}

} // namespace cg
