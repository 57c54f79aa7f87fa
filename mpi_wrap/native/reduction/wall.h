/* SPDX-License-Identifier: Apache-2.0 */
/* Wall time of call paths, from the times of the threads of one process. */
#ifndef QUIPU_WALL_H
#define QUIPU_WALL_H

#include <stdbool.h>
#include <stdint.h>

/* What the threads of a process counted: one row for a call path and a thread, or several. time, wait: in any unit, no
 * NaN. The main thread has the least number. threads: how many executed the call path, is filled in. */
struct quipu_thread_rows {
    int64_t count;
    const int64_t *path, *thread;
    const double *visits;
    double *time, *wait, *threads;
};

/* Replaces times of threads by wall times. threads: more than all numbers of threads. parent: of call paths, -1 without
 * one; they come before their children. False if there is no memory, or rows name what does not exist. */
bool quipu_wall_times(struct quipu_thread_rows rows, int64_t threads, int64_t path_count, const int64_t *parent);

#endif
