// SPDX-License-Identifier: Apache-2.0
// wavefront: sweeps of discrete ordinates transport over a three-dimensional grid of ranks (KBA), as in Kripke.
//
// A rank can begin with a direction when its upwind neighbours have finished it, so a wave of work runs from corner to
// corner of the process grid, and the ranks behind it wait. See README.md for the work per region.
#include "grid.hpp"
#include "sweep.hpp"

#include <array>
#include <cerrno>
#include <cfloat>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <string>

namespace {

constexpr int wrong_result = 1;
constexpr int wrong_usage = 2;

struct Arguments {
    std::array<int, 3> zones{};
    int sweeps = 0;
};

// A whole number from low to high, and nothing behind it.
bool read_integer(const char *text, long low, long high, int &value) {
    char *end = nullptr;
    errno = 0;
    const long number = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno == ERANGE || number < low || number > high)
        return false;
    value = static_cast<int>(number);
    return true;
}

// "n" for a cube, or "NXxNYxNZ".
bool read_zones(const std::string &text, std::array<int, 3> &zones) {
    std::size_t start = 0;
    for (int dimension = 0; dimension < 3; ++dimension) {
        const std::size_t end = dimension < 2 ? text.find('x', start) : text.size();
        if (!read_integer(text.substr(start, end - start).c_str(), 1, 500, zones[dimension]))
            return false;
        if (end == std::string::npos) {
            zones[1] = zones[2] = zones[0];
            return dimension == 0;
        }
        start = end + 1;
    }
    return true;
}

// Returns nullptr, or the name of the argument at fault.
const char *parse(int argc, char **argv, Arguments &arguments) {
    if (argc != 3)
        return "number of arguments";
    if (!read_zones(argv[1], arguments.zones))
        return "ZONES";
    return read_integer(argv[2], 1, 1000000, arguments.sweeps) ? nullptr : "SWEEPS";
}

int solve(const Arguments &arguments, const char *zones) {
    const Grid grid(arguments.zones);
    Sweep sweep(grid);
    for (int number = 0; number < arguments.sweeps; ++number)
        sweep.run();
    double error = sweep.largest_error();
    double total = sweep.total();
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, grid.communicator);
    MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_SUM, grid.communicator);
    // Rounding errors shrink from zone to zone, because each zone absorbs a part of what comes in.
    const bool verified = error <= 64.0 * DBL_EPSILON;
    if (grid.rank == 0)
        std::printf("wavefront ranks=%d dims=%dx%dx%d zones=%s sweeps=%d flux=%.15e error=%.3e %s\n", grid.ranks,
                    grid.dims[0], grid.dims[1], grid.dims[2], zones, arguments.sweeps, total, error,
                    verified ? "verified" : "WRONG");
    return verified ? EXIT_SUCCESS : wrong_result;
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    Arguments arguments;
    int status = wrong_usage;
    if (const char *fault = parse(argc, argv, arguments)) {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            std::fprintf(stderr,
                         "wavefront: wrong %s\n"
                         "usage: wavefront ZONES SWEEPS\n"
                         "  ZONES   zones per side of the block of a rank, n or NXxNYxNZ (each 1 to 500)\n"
                         "  SWEEPS  sweeps over all directions (1 to 1000000)\n",
                         fault);
    } else {
        status = solve(arguments, argv[1]);
    }
    MPI_Finalize();
    return status;
}
