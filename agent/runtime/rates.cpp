// SPDX-License-Identifier: Apache-2.0
/* Reads the file of rates (`quipu rates`, quipu.modeling.rates.runtime_text). */
#include "rates.h"

#include "number_map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace quipu {

namespace {

Rates *of_program;
Map of_regions, of_paths, of_operations, of_calls; /* indexed by hash */

[[noreturn]] void wrong_rates(const char *path, unsigned line, const char *why) {
    fprintf(stderr, "quipu: error: %s:%u: %s (from QUIPU_RATES) [bad-rates]\n", path, line, why);
    _exit(1);
}

/* The columns of the file: indexes of weighted metrics; QUIPU_WEIGHTED stands for visits. */
struct Columns {
    int metric[QUIPU_WEIGHTED + 1];
    int count;
};

bool read_columns(char *names, Columns &columns) {
    static const char *const known[] = {
#define QUIPU_METRIC(id, name, unit, kind, over_locations, description)
#define QUIPU_WEIGHTED_METRIC(id, name, unit, kind, over_locations, description) name,
#include "metrics.def"
        "visits"};
    char *rest = nullptr;
    for (char *name = strtok_r(names, "\t", &rest); name; name = strtok_r(nullptr, "\t", &rest)) {
        int metric = 0;
        while (metric <= QUIPU_WEIGHTED && strcmp(name, known[metric]) != 0)
            metric++;
        if (metric > QUIPU_WEIGHTED || columns.count > QUIPU_WEIGHTED)
            return false;
        columns.metric[columns.count++] = metric;
    }
    return columns.count > 0;
}

/* Reads `count` numbers of seconds, separated by tabs, as femtoseconds. Returns false if there are fewer. */
bool read_seconds(char *numbers, int count, double *fs) {
    constexpr double most = 1e18;
    for (int i = 0; i < count; i++) {
        char *end = numbers;
        fs[i] = strtod(numbers, &end) * fs_per_second;
        if (end == numbers || !(fs[i] >= 0 && fs[i] <= most) || *end != (i + 1 < count ? '\t' : '\0'))
            return false;
        numbers = end + 1;
    }
    return true;
}

Rates *rates_in(char *numbers, const Columns &columns) {
    double fs[QUIPU_WEIGHTED + 1];
    if (!read_seconds(numbers, columns.count, fs))
        return nullptr;
    auto *rates = make<Rates>();
    for (int i = 0; i < columns.count; i++)
        rates->fs[columns.metric[i]] = fs[i];
    return rates;
}

Operation *operation_in(char *numbers) {
    double fs[2];
    if (!read_seconds(numbers, 2, fs))
        return nullptr;
    auto *operation = make<Operation>();
    *operation = {fs[0], fs[1]};
    return operation;
}

struct Kind {
    const char *word;
    Map *map; /* null: rates of the program */
    bool of_mpi;
};
const Kind kinds[] = {{"program", nullptr, false},
                      {"region", &of_regions, false},
                      {"path", &of_paths, false},
                      {"operation", &of_operations, true},
                      {"call", &of_calls, true}};

const Kind *kind_of(const char *word) {
    for (const Kind &kind : kinds)
        if (strcmp(word, kind.word) == 0)
            return &kind;
    return nullptr;
}

} // namespace

uint64_t with_name(uint64_t path, const char *name, size_t length) {
    return hash_more("\x1f", 1, hash_more(name, length, path));
}

/* Reads the file. Each line has fields separated by tabs:
 *
 * - "metrics", then the names of the metrics;
 * - "program", "region" NAME or "path" NAMES (from the root, separated by \x1f), then seconds per unit of each metric;
 * - "operation" NAME or "call" NAMES of MPI, then seconds per call and per byte. */
void read_rates(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file)
        wrong_rates(path, 0, strerror(errno));
    char *line = nullptr;
    size_t size = 0;
    Columns columns = {};
    for (unsigned number = 1; getline(&line, &size, file) > 0; number++) {
        line[strcspn(line, "\n")] = '\0';
        char *fields = strchr(line, '\t');
        if (!fields)
            wrong_rates(path, number, "has no fields");
        *fields++ = '\0';
        if (strcmp(line, "metrics") == 0) {
            if (!read_columns(fields, columns))
                wrong_rates(path, number, "names a metric that the pass does not count");
            continue;
        }
        const Kind *kind = kind_of(line);
        char *numbers = fields;
        if (kind && kind->map) {
            numbers = strchr(fields, '\t');
            if (numbers)
                *numbers++ = '\0';
        }
        if (!kind || !numbers)
            wrong_rates(path, number, "must begin with program, region, path, operation or call");
        void *entry = nullptr;
        if (kind->of_mpi)
            entry = operation_in(numbers);
        else if (columns.count)
            entry = rates_in(numbers, columns);
        if (!entry)
            wrong_rates(path, number, "must contain one number above 0 for each metric");
        if (kind->map)
            kind->map->at(with_name(no_names, fields, strlen(fields))) = entry;
        else
            of_program = static_cast<Rates *>(entry);
    }
    if (!of_program)
        wrong_rates(path, 0, "has no rates of the program");
    free(line);
    fclose(file);
}

const Rates *rates_of(uint64_t path, uint64_t region) {
    const void *own = of_paths.find(path), *more = own ? own : of_regions.find(region);
    return more ? static_cast<const Rates *>(more) : of_program;
}

const Operation *operation_of(uint64_t path, uint64_t operation) {
    const void *own = of_calls.find(path);
    return static_cast<const Operation *>(own ? own : of_operations.find(operation));
}

} // namespace quipu
