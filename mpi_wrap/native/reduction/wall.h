/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the wall time of call paths from the times of the threads of one process. */
#ifndef QUIPU_WALL_H
#define QUIPU_WALL_H

#include <stdbool.h>
#include <stdint.h>

/* The times of the threads of a process, in one or more rows per call path and thread. The main thread has the smallest
 * number.
 *
 * - count: number of rows
 * - time, wait: exclusive time, and the waiting in it, both in the same unit, without NaN
 * - threads: output, the number of threads that executed the call path of the row */
struct quipu_thread_rows {
    int64_t count;
    const int64_t *path, *thread;
    const double *visits;
    double *time, *wait, *threads;
};

/* Replaces the times of threads in the rows by wall times. threads: all thread numbers are lower than this. path_count:
 * number of call paths. parent: parent of each call path; -1: it has none. Parents come before children. Returns false
 * if there is no memory, or if a row or parent is invalid. */
bool quipu_wall_times(struct quipu_thread_rows rows, int64_t threads, int64_t path_count, const int64_t *parent);

#endif
