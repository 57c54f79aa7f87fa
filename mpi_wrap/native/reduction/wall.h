/* SPDX-License-Identifier: Apache-2.0 */
/* Wall time of call paths, from the times of the threads of one process. */
#ifndef QUIPU_WALL_H
#define QUIPU_WALL_H

#include <stdbool.h>
#include <stdint.h>

/* The times of the threads of a process, one or more rows per call path and thread. time, wait: in any unit, without
 * NaN. The main thread has the smallest number. threads: output, the number of threads that executed the call path. */
struct quipu_thread_rows {
    int64_t count;
    const int64_t *path, *thread;
    const double *visits;
    double *time, *wait, *threads;
};

/* Replaces times of threads by wall times. threads: upper bound of thread numbers. parent: parent of each call path, or
 * -1; parents come before children. Returns false if there is no memory or a row is invalid. */
bool quipu_wall_times(struct quipu_thread_rows rows, int64_t threads, int64_t path_count, const int64_t *parent);

#endif
