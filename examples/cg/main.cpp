// SPDX-License-Identifier: Apache-2.0
// cg: conjugate gradients for a diffusion-reaction equation on a periodic 3-D grid, matrix in compressed rows.
//
// Every rank owns a slab of the same size (weak scaling). The solution is chosen first and the right-hand side made
// from it, so the error is known. See README.md for the work per region.
#include "arguments.hpp"
#include "errors.hpp"
#include "matrix.hpp"
#include "preconditioner.hpp"
#include "problem.hpp"
#include "solver.hpp"

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <exception>
#include <mpi.h>

namespace {

using namespace cg;

enum { exit_verified = 0, exit_wrong_result = 1, exit_usage = 2 };

// What the solver must satisfy; norms over all ranks.
struct Check {
    double residual; // |b - A x| / |b|
    double drift;    // difference between that and the residual of the recurrence
    double error;    // |x - solution| / |solution| in the norm of A
    double bound;    // of that error after the iterations done
};

Check check(const ReactionDiffusion<double> &a, double condition, const Vector<double> &solution,
            const Vector<double> &b, Vector<double> &x, const Progress &progress) {
    Vector<double> work = b;
    a.apply(x, work);
    scale_and_add(work, -1.0, b);
    const auto [norm_b, energy] = dot_pair(b, b, solution); // b = A solution
    const double size = std::sqrt(norm_b);
    const double residual = std::sqrt(dot(work, work));

    add_scaled(x, -1.0, solution);
    a.apply(x, work);
    const double error = std::sqrt(dot(x, work) / energy);
    add_scaled(x, 1.0, solution);

    // Saad, theorem 6.29.
    const double root = std::sqrt(condition);
    const double bound = 2 * std::pow((root - 1) / (root + 1), progress.iterations);
    return {residual / size, std::fabs(residual - progress.residual) / size, error, bound};
}

int run(const Arguments &arguments, int rank, int ranks) {
    const Partition partition{rank, ranks, arguments.n, arguments.planes};
    const ReactionDiffusion<double> a(partition);
    const auto preconditioner = make_preconditioner(arguments.preconditioner, a);
    Vector<double> solution(partition), b(partition), x(partition);
    fill_solution(partition, solution);
    fill_right_hand_side(partition, b);
    const Progress progress = conjugate_gradients(a, *preconditioner, b, x, arguments.limits);
    const Check result = check(a, preconditioner->condition_bound(), solution, b, x, progress);

    // Rounding: a few units in the last place per iteration, against a condition number of 14.
    const double rounding = 16 * DBL_EPSILON * (progress.iterations + 4.0);
    const bool verified = result.drift <= rounding && result.error <= result.bound + rounding;
    const double norm = std::sqrt(dot(x, x));
    if (rank == 0)
        std::printf("cg ranks=%d points=%zux%zux%zu iterations=%d residual=%.15e norm=%.15e error=%.3e %s\n", ranks,
                    partition.n, partition.n, partition.planes * static_cast<std::size_t>(ranks), progress.iterations,
                    result.residual, norm, result.error, verified ? "verified" : "WRONG");
    return verified ? exit_verified : exit_wrong_result;
}

} // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int status = exit_wrong_result;
    try {
        status = run(parse_arguments(argc, argv), rank, ranks);
    } catch (const UsageError &error) {
        if (rank == 0)
            std::fprintf(stderr, "cg: %s\n%s", error.what(), usage);
        status = exit_usage;
    } catch (const SolverError &error) {
        if (rank == 0)
            std::fprintf(stderr, "cg: %s\n", error.what());
    } catch (const std::exception &error) {
        // Out of memory, for example: only this rank may have failed, and the others must not wait for it.
        std::fprintf(stderr, "cg: rank %d: %s\n", rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, exit_wrong_result);
    }
    MPI_Finalize();
    return status;
}
