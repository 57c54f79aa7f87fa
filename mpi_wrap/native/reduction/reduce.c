/* SPDX-License-Identifier: Apache-2.0 */
/* The reduction: its steps, and the order of messages between ranks. */
#include "reduce.h"

#include "cells.h"
#include "quipu.h"
#include "wall.h"
#include "work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* VERSION: of the file format. MOST_OPEN: largest number of open call paths for which the file contains the values of
 * all ranks. BLOCK: number of cells in a message. */
enum { VERSION = 4, MOST_OPEN = 64, TAG = QUIPU_TAG, BLOCK = 512 };

/* Reads which metrics have the unit s (times), and which combine threads and ranks by their maximum: the fields unit
 * and over of each line "name\tunit\tkind\tover\tdescription\n". */
static void read_metric_table(struct quipu_work *work) {
    const char *line = work->mine->metric_table;
    for (uint32_t metric = 0; metric < work->mine->metrics && *line != '\0'; metric++) {
        const char *unit = strchr(line, '\t'), *kind = unit == NULL ? NULL : strchr(unit + 1, '\t');
        const char *over = kind == NULL ? NULL : strchr(kind + 1, '\t');
        if (over == NULL)
            return;
        work->is_time[metric] = strncmp(unit, "\ts\t", 3) == 0;
        work->is_max[metric] = strncmp(over, "\tmax\t", 5) == 0;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
}

static int by_path(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* Sorts the nodes of the snapshot by the numbers of their call paths. */
static void sort_nodes(struct quipu_work *work) {
    const uint32_t nodes = work->mine->nodes;
    uint64_t *keys = malloc(((size_t)nodes + 1) * sizeof *keys);
    work->sorted = malloc(((size_t)nodes + 1) * sizeof *work->sorted);
    if (keys == NULL || work->sorted == NULL) {
        work->me.good = false;
    } else {
        for (uint32_t i = 0; i < nodes; i++)
            keys[i] = (uint64_t)work->path[i] << 32 | i;
        qsort(keys, nodes, sizeof *keys, by_path);
        for (uint32_t i = 0; i < nodes; i++)
            work->sorted[i] = (uint32_t)keys[i];
    }
    free(keys);
}

/* Sends call trees up the binomial tree. Each rank adds the trees of higher ranks to its tree, so that rank 0 has all
 * call paths in the order of the ranks. */
static void unify_up(struct quipu_work *work) {
    for (int step = 1; step < work->me.size; step <<= 1) {
        if (work->me.rank & step) {
            uint64_t size = 0;
            char *message = work->me.good ? quipu_tree_pack(&work->tree, &size) : NULL;
            work->me.good = work->me.good && message != NULL;
            quipu_send_bytes(&work->me, message, message == NULL ? 0 : size, work->me.rank - step);
            free(message);
            return;
        }
        if (work->me.rank + step >= work->me.size)
            continue;
        uint64_t size;
        char *message = quipu_receive_bytes(&work->me, &size, work->me.rank + step);
        work->me.good = work->me.good && message != NULL && quipu_tree_add_packed(&work->tree, message, size);
        free(message);
    }
}

static void broadcast_tree(struct quipu_work *work) {
    uint64_t size = 0;
    char *message = work->me.rank == 0 ? quipu_tree_pack(&work->tree, &size) : NULL;
    quipu_broadcast(&work->me, &size, sizeof size);
    if (work->me.rank != 0)
        message = malloc(size + 1);
    work->me.good = message != NULL;
    if (!quipu_agreed(&work->me)) {
        free(message);
        return;
    }
    quipu_broadcast(&work->me, message, size);
    if (work->me.rank != 0) {
        /* The union replaces the tree of this rank, so that call paths have the numbers of rank 0. */
        quipu_tree_end(&work->tree);
        work->me.good = quipu_tree_begin(&work->tree) && quipu_tree_add_packed(&work->tree, message, size) &&
                        quipu_tree_add_snapshot(&work->tree, work->mine, work->path);
    }
    free(message);
}

/* Creates the union of the call trees of all ranks, on all ranks. */
static void unify(struct quipu_work *work) {
    work->path = malloc(((size_t)work->mine->nodes + 1) * sizeof *work->path);
    work->me.good = quipu_tree_begin(&work->tree) && work->path != NULL &&
                    quipu_tree_add_snapshot(&work->tree, work->mine, work->path);
    uint64_t size = 0;
    char *packed = work->me.good ? quipu_tree_pack(&work->tree, &size) : NULL;
    work->me.good = packed != NULL;
    const char *table = work->mine->metric_table;
    const uint64_t hash = packed == NULL ? 0 : quipu_hash(packed, size, size);
    const uint64_t table_hash = quipu_hash(table, strlen(table), work->mine->metrics);
    free(packed);
    /* A number x is equal on all ranks if the minimum of ~x is the complement of the minimum of x. */
    uint64_t least_of[] = {work->me.good, hash, ~hash, table_hash, ~table_hash};
    quipu_least(&work->me, least_of, sizeof least_of / sizeof *least_of);
    work->me.good = least_of[0] == 1 && least_of[3] == ~least_of[4];
    if (!work->me.good || least_of[1] == ~least_of[2])
        return;
    unify_up(work);
    if (quipu_agreed(&work->me))
        broadcast_tree(work);
    quipu_agreed(&work->me);
}

/* Copies the values of the snapshot to work->values, and replaces the times of threads by wall times (wall.h). */
static void find_wall_times(struct quipu_work *work) {
    const struct quipu_snapshot *mine = work->mine;
    const size_t nodes = mine->nodes, metrics = mine->metrics, paths = work->tree.paths.count;
    work->values = malloc((nodes * metrics + 1) * sizeof *work->values);
    int64_t *whole = malloc((2 * nodes + paths + 1) * sizeof *whole);
    double *seconds = malloc((4 * nodes + 1) * sizeof *seconds);
    work->me.good = work->values != NULL && whole != NULL && seconds != NULL;
    if (work->me.good) {
        int64_t *path = whole, *thread = path + nodes, *parent = thread + nodes, threads = 0;
        double *visits = seconds, *time = visits + nodes, *wait = time + nodes, *number = wait + nodes;
        memcpy(work->values, mine->values, nodes * metrics * sizeof *work->values);
        for (size_t i = 0; i < paths; i++)
            parent[i] = work->tree.paths.parent[i] == QUIPU_ROOT ? -1 : (int64_t)work->tree.paths.parent[i];
        for (size_t i = 0; i < nodes; i++) {
            const uint64_t *values = mine->values + i * metrics;
            path[i] = work->path[i];
            thread[i] = mine->location[i];
            threads = thread[i] >= threads ? thread[i] + 1 : threads;
            visits[i] = (double)values[QUIPU_VISITS];
            time[i] = (double)values[QUIPU_TIME];
            wait[i] = (double)values[QUIPU_WAIT_TIME];
        }
        const struct quipu_thread_rows rows = {(int64_t)nodes, path, thread, visits, time, wait, number};
        work->me.good = quipu_wall_times(rows, threads, (int64_t)paths, parent);
        for (size_t i = 0; work->me.good && i < nodes; i++) {
            uint64_t *values = work->values + i * metrics;
            values[QUIPU_THREAD_TIME] = values[QUIPU_TIME];
            values[QUIPU_THREADS] = (uint64_t)number[i];
            values[QUIPU_TIME] = (uint64_t)(time[i] + 0.5);
            values[QUIPU_WAIT_TIME] = (uint64_t)(wait[i] + 0.5);
        }
    }
    free(whole);
    free(seconds);
}

/* Returns the number of cells of a call path: one for each metric, and one for the measurement overhead. */
static uint32_t cells_of_path(const struct quipu_work *work) { return work->mine->metrics + 1; }

/* Returns the value of a call path on this rank: the sum or maximum of a metric over the nodes begin <= i < end of
 * `sorted`. Times and the overhead (metric = number of metrics) are in seconds; NaN: times are not known. */
static double value_of(const struct quipu_work *work, uint32_t metric, uint32_t begin, uint32_t end) {
    uint64_t value = 0;
    if (metric == work->mine->metrics) {
        double seconds = 0;
        for (uint32_t i = begin; i < end; i++)
            seconds += quipu_overhead_of_node(work, work->sorted[i]);
        return seconds;
    }
    for (uint32_t i = begin; i < end; i++) {
        const uint64_t more = work->values[(size_t)work->sorted[i] * work->mine->metrics + metric];
        value = !work->is_max[metric] ? value + more : more > value ? more : value;
    }
    if (!work->is_time[metric])
        return (double)value;
    if (value >> 63) /* negative: the clock went backwards */
        value = 0;
    return work->mine->seconds_per_tick > 0 ? (double)value * work->mine->seconds_per_tick : NAN;
}

/* Computes the cells of this rank for `count` call paths from `first` on. *at: index in `sorted` of the first node that
 * belongs to one of them; moved behind the last one. */
static void own_cells(const struct quipu_work *work, uint32_t first, uint32_t count, uint32_t *at,
                      struct quipu_cell *cells) {
    for (uint32_t path = first; path < first + count; path++) {
        const uint32_t begin = *at;
        while (*at < work->mine->nodes && work->path[work->sorted[*at]] == path)
            ++*at;
        for (uint32_t metric = 0; metric < cells_of_path(work); metric++)
            quipu_cell_of_rank(cells++, *at > begin ? value_of(work, metric, begin, *at) : 0, *at > begin,
                               (uint32_t)work->me.rank);
    }
}

/* Reduces one block of cells up the binomial tree to rank 0. A rank that has failed still sends and receives. room:
 * bytes of the buffer `message`. */
static void reduce_block(struct quipu_work *work, struct quipu_cell *cells, uint32_t count, char *message,
                         uint64_t room) {
    for (int step = 1; step < work->me.size; step <<= 1) {
        if (work->me.rank & step) {
            const uint64_t size = quipu_cells_pack(message, cells, count);
            PMPI_Send(message, (int)size, MPI_BYTE, work->me.rank - step, TAG, work->me.comm);
            return;
        }
        if (work->me.rank + step >= work->me.size)
            continue;
        MPI_Status status;
        int size = 0;
        PMPI_Recv(message, (int)room, MPI_BYTE, work->me.rank + step, TAG, work->me.comm, &status);
        PMPI_Get_count(&status, MPI_BYTE, &size);
        if (work->me.good)
            work->me.good = quipu_cells_merge_packed(cells, count, message, (uint64_t)size);
    }
}

static void reduce_statistics(struct quipu_work *work) {
    const uint32_t metrics = cells_of_path(work);
    const uint32_t step = metrics < BLOCK ? BLOCK / metrics : 1;
    const uint64_t room = (uint64_t)step * metrics * QUIPU_PACKED_CELL;
    struct quipu_cell *cells = calloc((size_t)step * metrics, sizeof *cells);
    char *message = malloc(room);
    work->me.good = cells != NULL && message != NULL;
    if (quipu_agreed(&work->me)) {
        uint32_t at = 0;
        for (uint32_t first = 0; first < work->tree.paths.count; first += step) {
            const uint32_t count = work->tree.paths.count - first < step ? work->tree.paths.count - first : step;
            own_cells(work, first, count, &at, cells);
            reduce_block(work, cells, count * metrics, message, room);
            if (work->me.rank == 0) {
                const uint32_t range[] = {first * metrics, count * metrics};
                const struct quipu_part parts[] = {
                    {range, sizeof range}, {message, quipu_cells_pack(message, cells, (uint64_t)count * metrics)}};
                quipu_file_section(&work->file, "STAT", parts, 2);
            }
        }
    }
    free(cells);
    free(message);
}

/* Writes the values of one open call path (still active at the snapshot) on all ranks into the file. row: buffer for
 * the ranks in the subtree of this rank. bytes: size of the values of one rank. */
static void collect_open_path(struct quipu_work *work, uint32_t path, double *row, size_t bytes) {
    uint32_t begin = 0;
    while (begin < work->mine->nodes && work->path[work->sorted[begin]] < path)
        begin++;
    uint32_t end = begin;
    while (end < work->mine->nodes && work->path[work->sorted[end]] == path)
        end++;
    row[0] = end > begin;
    for (uint32_t metric = 0; metric < cells_of_path(work); metric++)
        row[metric + 1] = value_of(work, metric, begin, end);
    quipu_gather(&work->me, (char *)row, bytes);
    if (work->me.rank == 0) {
        const uint32_t head[] = {path, 0};
        const struct quipu_part parts[] = {{head, sizeof head}, {row, (size_t)work->me.size * bytes}};
        quipu_file_section(&work->file, "OPEN", parts, 2);
    }
}

static void collect_open_paths(struct quipu_work *work) {
    const size_t bytes = (cells_of_path(work) + 1) * sizeof(double);
    double *rows = malloc(bytes * (size_t)quipu_below(&work->me));
    work->me.good = work->me.good && rows != NULL;
    if (quipu_agreed(&work->me) && rows != NULL) {
        int open = 0;
        for (uint32_t path = 0; path < work->tree.paths.count && open < MOST_OPEN; path++)
            if (work->tree.open[path]) {
                collect_open_path(work, path, rows, bytes);
                open++;
            }
    }
    free(rows);
}

static void write_head(struct quipu_work *work, const struct quipu_reduction *reduction, bool columns, bool timed,
                       const uint32_t *pids) {
    const struct quipu_tree *tree = &work->tree;
    const uint32_t numbers[] = {
        VERSION, (uint32_t)work->me.size, work->mine->metrics, tree->paths.count, tree->regions, columns, timed, 0};
    const struct quipu_part head[] = {{numbers, sizeof numbers}, {reduction->id, sizeof reduction->id}};
    quipu_file_section(&work->file, "HEAD", head, 2);
    const struct quipu_part table = {work->mine->metric_table, strlen(work->mine->metric_table)};
    quipu_file_section(&work->file, "METR", &table, 1);
    struct quipu_part *texts = malloc(((size_t)tree->regions + 1) * sizeof *texts);
    for (uint32_t i = 0; texts != NULL && i < tree->regions; i++)
        texts[i] = (struct quipu_part){tree->texts[i], strlen(tree->texts[i]) + 1};
    if (texts != NULL)
        quipu_file_section(&work->file, "REGI", texts, tree->regions);
    free(texts); /* if there was no memory, the section is missing, and the reader rejects the file */
    const struct quipu_part nodes[] = {{tree->paths.parent, 4 * (size_t)tree->paths.count},
                                       {tree->paths.region, 4 * (size_t)tree->paths.count}};
    quipu_file_section(&work->file, "TREE", nodes, 2);
    const struct quipu_part ranks = {pids, 4 * (size_t)work->me.size};
    quipu_file_section(&work->file, "RANK", &ranks, 1);
}

/* Chooses the id of the file. Rank 0 opens the file, and writes the header and the process ids of all ranks. */
static void begin_file(struct quipu_work *work, struct quipu_reduction *reduction, bool columns) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t seed = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    const uint64_t id = quipu_hash(&seed, sizeof seed, QUIPU_HASH ^ (uint64_t)getpid() << 20);
    snprintf(reduction->id, sizeof reduction->id, "%016llx", (unsigned long long)id);
    quipu_broadcast(&work->me, reduction->id, sizeof reduction->id);
    uint64_t untimed = !(work->mine->seconds_per_tick > 0);
    quipu_least(&work->me, &untimed, 1);
    uint32_t *pids = malloc(sizeof *pids * (size_t)quipu_below(&work->me));
    work->me.good = pids != NULL;
    if (quipu_agreed(&work->me) && pids != NULL) {
        pids[0] = reduction->pid;
        quipu_gather(&work->me, (char *)pids, sizeof *pids);
        if (work->me.rank == 0) {
            quipu_file_open(&work->file, reduction->folder, reduction->id);
            if (work->file.file != NULL)
                write_head(work, reduction, columns, untimed == 0, pids);
            work->me.good = work->file.file != NULL;
        }
        quipu_agreed(&work->me);
    }
    free(pids);
}

bool quipu_reduce(const struct quipu_snapshot *mine, MPI_Comm comm, struct quipu_reduction *reduction) {
    struct quipu_work work = {.me = {.comm = comm, .good = mine != NULL}, .mine = mine, .waits = reduction->waits};
    PMPI_Comm_rank(comm, &work.me.rank);
    PMPI_Comm_size(comm, &work.me.size);
    if (!quipu_agreed(&work.me) || mine == NULL)
        return false;
    work.is_time = calloc(2 * (size_t)mine->metrics, 1);
    work.me.good = work.is_time != NULL;
    if (quipu_agreed(&work.me)) {
        work.is_max = work.is_time + mine->metrics;
        read_metric_table(&work);
        unify(&work);
    }
    if (work.me.good) {
        sort_nodes(&work);
        quipu_agreed(&work.me);
    }
    if (work.me.good) {
        find_wall_times(&work);
        quipu_agreed(&work.me);
    }
    const bool columns = (uint32_t)work.me.size <= reduction->column_ranks;
    if (work.me.good) {
        begin_file(&work, reduction, columns);
        if (work.me.good)
            quipu_collect_costs(&work);
        if (work.me.good && columns) {
            quipu_collect_rows(&work);
        } else if (work.me.good) {
            reduce_statistics(&work);
            collect_open_paths(&work);
        }
        quipu_agreed(&work.me);
        if (work.me.rank == 0)
            work.me.good = quipu_file_close(&work.file, work.me.good);
        quipu_agreed(&work.me);
    }
    quipu_tree_end(&work.tree);
    free(work.path);
    free(work.sorted);
    free(work.values);
    free(work.is_time);
    return work.me.good;
}
