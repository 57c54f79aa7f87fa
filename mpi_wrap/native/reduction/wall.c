/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the wall time of call paths from the times of the threads of one process.
 *
 * The wall time of a call path is the time of the main thread in it. A call path that only other threads execute gets
 * the time in which the main thread waits for these threads. This time is subtracted from other call paths of the main
 * thread: first from call paths directly below the caller that consist of waiting, then from the caller itself, then
 * from waiting directly below outer callers. The sum of the wall times of all call paths is therefore always the time
 * of the main thread.
 */
#include "wall.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* Data of a call path. Times have the unit of the rows. A call path of other threads is a call path that the main
 * thread does not execute; its root is the uppermost such call path. */
struct of_path {
    double time, wait;     /* remaining time of the main thread, and the part of it that is waiting */
    double before, waited; /* initial values of time and wait */
    /* wanted: time that call paths of other threads directly below need from this call path and its callers. share: the
     * part of `wanted` that they get, from 0 to 1. */
    double wanted, share;
    double longest;            /* at a root: inclusive time of the busiest thread */
    int64_t busiest;           /* at a root: number of this thread */
    int64_t root, child, next; /* the root; the first callee; the next callee of the same caller; NONE: there is none */
    bool on_main;              /* the main thread executes this call path */
};

/* Finds the thread with the largest inclusive time at each root. order: numbers of the rows, sorted by thread.
 * inclusive: one element for each call path, all 0 before and after. */
static void find_busiest(struct of_path *paths, const struct quipu_thread_rows *rows, const int64_t *order,
                         double *inclusive) {
    for (int64_t begin = 0, end; begin < rows->count; begin = end) {
        const int64_t thread = rows->thread[order[begin]];
        for (end = begin; end < rows->count && rows->thread[order[end]] == thread; end++) {
            const int64_t root = paths[rows->path[order[end]]].root;
            if (root != NONE)
                inclusive[root] += rows->time[order[end]];
        }
        for (int64_t i = begin; i < end; i++) {
            const int64_t root = paths[rows->path[order[i]]].root;
            if (root != NONE && inclusive[root] > paths[root].longest) {
                paths[root].longest = inclusive[root];
                paths[root].busiest = thread;
            }
        }
        for (int64_t i = begin; i < end; i++)
            if (paths[rows->path[order[i]]].root != NONE)
                inclusive[paths[rows->path[order[i]]].root] = 0;
    }
}

static double take(double *from, double wanted) {
    const double taken = wanted < *from ? wanted : *from;
    *from -= taken;
    return taken;
}

/* Subtracts up to `wanted` from the time of call paths of the main thread that consist of waiting: of the call path
 * `first` and the later callees of the same caller. Returns the subtracted time. */
static double take_waiting(struct of_path *paths, int64_t first, double wanted) {
    double taken = 0;
    for (int64_t child = first; child != NONE && taken < wanted; child = paths[child].next)
        if (paths[child].on_main && paths[child].wait > 0 && paths[child].waited > 0.999 * paths[child].before) {
            const double part = take(&paths[child].time, wanted - taken);
            paths[child].wait = paths[child].time;
            taken += part;
        }
    return taken;
}

/* Subtracts the time for the call paths of other threads directly below `caller` from call paths of the main thread. */
static void take_for(struct of_path *paths, const int64_t *parent, int64_t first_root, int64_t caller) {
    double taken = 0;
    const double wanted = caller == NONE ? 0 : paths[caller].wanted;
    if (!(wanted > 0))
        return;
    taken += take_waiting(paths, paths[caller].child, wanted);
    if (taken < wanted)
        taken += take(&paths[caller].time, wanted - taken);
    for (int64_t above = parent[caller]; taken < wanted; above = parent[above]) {
        taken += take_waiting(paths, above == NONE ? first_root : paths[above].child, wanted - taken);
        if (above == NONE)
            break;
    }
    if (paths[caller].wait > paths[caller].time)
        paths[caller].wait = paths[caller].time;
    paths[caller].share = taken / wanted;
}

/* Subtracts the time for roots without a caller from call paths of the main thread without a caller. Returns the part
 * of `wanted` that was subtracted, from 0 to 1. */
static double take_for_roots(struct of_path *paths, int64_t first_root, double wanted) {
    double taken = take_waiting(paths, first_root, wanted);
    for (int64_t root = first_root; root != NONE && taken < wanted; root = paths[root].next)
        if (paths[root].on_main)
            taken += take(&paths[root].time, wanted - taken);
    return wanted > 0 ? taken / wanted : 0;
}

/* Returns the row numbers sorted by thread; NULL if there is no memory. */
static int64_t *by_thread(const struct quipu_thread_rows *rows, int64_t threads) {
    int64_t *order = malloc(((size_t)rows->count + (size_t)threads + 2) * sizeof *order);
    if (order == NULL)
        return NULL;
    int64_t *place = order + rows->count;
    memset(place, 0, ((size_t)threads + 2) * sizeof *place);
    for (int64_t i = 0; i < rows->count; i++)
        place[rows->thread[i] + 1]++;
    for (int64_t thread = 0; thread < threads; thread++)
        place[thread + 1] += place[thread];
    for (int64_t i = 0; i < rows->count; i++)
        order[place[rows->thread[i]]++] = i;
    return order;
}

static bool are_good(const struct quipu_thread_rows *rows, int64_t threads, int64_t paths, const int64_t *parent) {
    for (int64_t i = 0; i < rows->count; i++)
        if (rows->path[i] < 0 || rows->path[i] >= paths || rows->thread[i] < 0 || rows->thread[i] >= threads)
            return false;
    for (int64_t path = 0; path < paths; path++)
        if (parent[path] < NONE || parent[path] >= path)
            return false;
    return true;
}

/* Sets threads[i] to the number of threads that executed the call path of row i. last: temporary, for each call path.
 * Returns false if there is no memory. */
static bool count_threads(const struct quipu_thread_rows *rows, const int64_t *order, int64_t paths, int64_t *last,
                          double *threads) {
    double *number = calloc((size_t)paths + 1, sizeof *number);
    if (number == NULL)
        return false;
    for (int64_t path = 0; path < paths; path++)
        last[path] = NONE;
    for (int64_t i = 0; i < rows->count; i++) {
        const int64_t row = order[i], path = rows->path[row];
        if ((rows->visits[row] > 0 || rows->time[row] > 0) && last[path] != rows->thread[row]) {
            number[path]++;
            last[path] = rows->thread[row];
        }
    }
    for (int64_t i = 0; i < rows->count; i++)
        threads[i] = number[rows->path[i]];
    free(number);
    return true;
}

bool quipu_wall_times(struct quipu_thread_rows rows, int64_t threads, int64_t path_count, const int64_t *parent) {
    if (threads < 0 || !are_good(&rows, threads, path_count, parent))
        return false;
    struct of_path *paths = calloc((size_t)path_count + 1, sizeof *paths);
    int64_t *order = by_thread(&rows, threads), *last = calloc((size_t)path_count + 1, sizeof *last);
    double *inclusive = calloc((size_t)path_count + 1, sizeof *inclusive);
    const bool good = paths != NULL && order != NULL && last != NULL && inclusive != NULL &&
                      count_threads(&rows, order, path_count, last, rows.threads);
    for (int64_t path = 0; good && path < path_count; path++)
        paths[path] = (struct of_path){.root = NONE, .child = NONE, .next = NONE, .busiest = NONE};
    const int64_t main_thread = good && rows.count > 0 ? rows.thread[order[0]] : NONE;
    for (int64_t i = 0; good && i < rows.count; i++)
        if (rows.thread[i] == main_thread) {
            struct of_path *path = &paths[rows.path[i]];
            path->on_main = true;
            path->before = path->time += rows.time[i];
            path->waited = path->wait += rows.wait[i];
        }
    /* The main thread also executes the callers of its call paths. */
    for (int64_t path = 0; good && path < path_count; path++)
        for (int64_t above = parent[path]; paths[path].on_main && above != NONE && !paths[above].on_main;
             above = parent[above])
            paths[above].on_main = true;
    int64_t first_root = NONE;
    for (int64_t path = path_count - 1; good && path >= 0; path--) {
        int64_t *list = parent[path] == NONE ? &first_root : &paths[parent[path]].child;
        paths[path].next = *list;
        *list = path;
    }
    for (int64_t path = 0; good && path < path_count; path++)
        if (!paths[path].on_main)
            paths[path].root = parent[path] != NONE && !paths[parent[path]].on_main ? paths[parent[path]].root : path;
    double wanted_by_roots = 0;
    if (good)
        find_busiest(paths, &rows, order, inclusive);
    for (int64_t path = 0; good && path < path_count; path++)
        if (paths[path].root == path)
            *(parent[path] == NONE ? &wanted_by_roots : &paths[parent[path]].wanted) += paths[path].longest;
    for (int64_t path = path_count - 1; good && path >= 0; path--)
        take_for(paths, parent, first_root, path);
    const double share_of_roots = good ? take_for_roots(paths, first_root, wanted_by_roots) : 0;
    for (int64_t i = 0; good && i < rows.count; i++) {
        const struct of_path *path = &paths[rows.path[i]];
        double time = 0, wait = 0;
        if (rows.thread[i] == main_thread) {
            time = path->before > 0 ? path->time / path->before : 0;
            wait = path->waited > 0 ? path->wait / path->waited : 0;
        } else if (path->root != NONE && paths[path->root].busiest == rows.thread[i]) {
            const int64_t caller = parent[path->root];
            time = wait = caller == NONE ? share_of_roots : paths[caller].share;
        }
        rows.time[i] *= time;
        rows.wait[i] *= wait;
    }
    free(paths);
    free(order);
    free(last);
    free(inclusive);
    return good;
}
