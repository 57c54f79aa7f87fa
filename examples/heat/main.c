/* SPDX-License-Identifier: Apache-2.0 */
/* heat: the 3-D heat equation on a periodic grid, explicit 7-point stencil, 3-D block decomposition.
 *
 * Every rank owns a block of the same size (weak scaling). The start is a sine mode, which the scheme multiplies by
 * a known factor in every step, so the result is known up to rounding. See README.md for the work per region. */
#include "grid.h"
#include "halo.h"
#include "stencil.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_WRONG_RESULT = 1, EXIT_USAGE = 2 };
enum { LARGEST_CELLS = 1000, LARGEST_STEPS = 1000000 };

struct arguments {
    int cells[3];
    int steps;
    int interval;
};

static const char usage[] = "usage: heat CELLS STEPS [INTERVAL]\n"
                            "  CELLS     cells per dimension and rank, n or NXxNYxNZ (each 2 to 1000)\n"
                            "  STEPS     time steps (1 to 1000000)\n"
                            "  INTERVAL  steps between two residuals (default 5)\n";

/* Read an integer from [low, high] at *text and move *text behind it; 0 if there is none. */
static int read_integer(const char **text, long low, long high, int *value) {
    char *end;
    errno = 0;
    const long number = strtol(*text, &end, 10);
    if (end == *text || errno == ERANGE || number < low || number > high)
        return 0;
    *text = end;
    *value = (int)number;
    return 1;
}

/* Read "n" or "NXxNYxNZ"; 0 if the text is neither. */
static int read_cells(const char *text, int cells[3]) {
    if (!read_integer(&text, 2, LARGEST_CELLS, &cells[0]))
        return 0;
    if (*text == '\0') {
        cells[1] = cells[2] = cells[0];
        return 1;
    }
    for (int d = 1; d < 3; ++d)
        if (*text++ != 'x' || !read_integer(&text, 2, LARGEST_CELLS, &cells[d]))
            return 0;
    return *text == '\0';
}

/* Returns NULL, or the name of the argument at fault. */
static const char *parse_arguments(int argc, char **argv, struct arguments *arguments) {
    if (argc < 3 || argc > 4)
        return "number of arguments";
    if (!read_cells(argv[1], arguments->cells))
        return "CELLS";
    const char *text = argv[2];
    if (!read_integer(&text, 1, LARGEST_STEPS, &arguments->steps) || *text != '\0')
        return "STEPS";
    arguments->interval = 5;
    text = argc > 3 ? argv[3] : "5";
    if (!read_integer(&text, 1, LARGEST_STEPS, &arguments->interval) || *text != '\0')
        return "INTERVAL";
    return NULL;
}

/* Advance *now by all steps (*next is the other buffer); returns the residual of the last checked step, 0 if none. */
static double run(const struct grid *grid, struct halo *halo, double **now, double **next,
                  const struct arguments *arguments, double ratio) {
    double residual = 0.0;
    for (int step = 1; step <= arguments->steps; ++step) {
        halo_exchange(halo, grid, *now);
        stencil_sweep(grid, *now, *next, ratio);
        if (step % arguments->interval == 0)
            residual = stencil_distance(grid, *next, *now);
        double *swap = *now;
        *now = *next;
        *next = swap;
    }
    return residual;
}

static int solve(const struct arguments *arguments) {
    const double ratio = 0.1;
    struct grid grid;
    struct halo halo;
    grid_create(&grid, arguments->cells);
    halo_create(&halo, &grid);
    double *now = grid_new_field(&grid);
    double *next = grid_new_field(&grid);
    grid_set_sine_mode(&grid, now);

    const double residual = run(&grid, &halo, &now, &next, arguments, ratio);

    const double norm = stencil_norm(&grid, now);
    /* The other buffer is free now: it takes the start values again. */
    grid_set_sine_mode(&grid, next);
    const double expected = pow(stencil_mode_factor(&grid, ratio), arguments->steps);
    const double error = stencil_largest_error(&grid, now, next, expected);
    /* The scheme amplifies no error (its coefficients are positive and add up to 1), and a step rounds about ten
     * times values below 1. */
    const double tolerance = 8.0 * DBL_EPSILON * (arguments->steps + 4.0);
    const int verified = error <= tolerance;
    if (grid.rank == 0)
        printf("heat ranks=%d dims=%dx%dx%d cells=%dx%dx%d steps=%d residual=%.15e norm=%.15e error=%.3e %s\n",
               grid.ranks, grid.dims[0], grid.dims[1], grid.dims[2], grid_global_cells(&grid, 0),
               grid_global_cells(&grid, 1), grid_global_cells(&grid, 2), arguments->steps, residual, norm, error,
               verified ? "verified" : "WRONG");
    free(now);
    free(next);
    halo_free(&halo);
    grid_free(&grid);
    return verified ? EXIT_SUCCESS : EXIT_WRONG_RESULT;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    struct arguments arguments;
    const char *fault = parse_arguments(argc, argv, &arguments);
    int status = EXIT_USAGE;
    if (fault) {
        int rank;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            fprintf(stderr, "heat: wrong %s\n%s", fault, usage);
    } else {
        status = solve(&arguments);
    }
    MPI_Finalize();
    return status;
}
