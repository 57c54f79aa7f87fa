// SPDX-License-Identifier: Apache-2.0
#include "further.h"

#include "delays.h"
#include "settings.h"
#include "tree.h"

#include <stdio.h>
#include <string.h>

namespace quipu {
namespace {

struct Metric {
    quipu_further_group group;
    bool is_max;
    const char *line;
};

constexpr bool is_max(const char *over_locations) { return over_locations[0] == 'm'; }

constexpr Metric metrics[] = {
#define QUIPU_FURTHER_METRIC(group, id, name, unit, kind, over_locations, description)                                 \
    {QUIPU_GROUP_##group, is_max(over_locations), name "\t" unit "\t" kind "\t" over_locations "\t" description "\n"},
#include "further_metrics.def"
};

constexpr const char *variables[QUIPU_GROUPS] = {"QUIPU_MEMORY", "QUIPU_FILES", "QUIPU_OFFLOAD", "QUIPU_MPI_WAIT"};

/* Reasons for missing metrics that the user requested. */
constexpr const char *problems[QUIPU_GROUPS][2] = {
    {"memory_problem", "allocations are not counted: the program is linked statically, or replaced LD_PRELOAD; link it "
                       "with shared libraries"},
    {"files_problem", "reading and writing files is not counted: the program is linked statically, or replaced "
                      "LD_PRELOAD; link it with shared libraries"},
    {nullptr, nullptr}, /* the runtime itself counts */
    {nullptr, nullptr},
};

bool wanted[QUIPU_GROUPS];
uint32_t first; /* index of the first further metric in a node; 0: unknown yet */

using Settle = void (*)(int);

void settle_nothing(int) {}

void settle_critical(int) {
    if (const uint32_t place = quipu_further_place(QUIPU_GROUP_MPI_WAIT))
        count_critical(place + QUIPU_CRITICAL_BLOCKS);
}

/* Returns the function that updates the metrics of a group; null if no library counts the group. */
Settle settle_of(uint32_t group) {
    const Settle known[QUIPU_GROUPS] = {quipu_settle_memory, quipu_settle_files, settle_nothing, settle_critical};
    return known[group];
}

bool is_asked_for(uint32_t group) {
    const char *value = setting(variables[group]);
    if (group == QUIPU_GROUP_MPI_WAIT) /* the same defaults as in wait.c and wait_smpi.c */
        return ranks ? !value || strcmp(value, "off") != 0
                     : value && (strcmp(value, "all") == 0 || strcmp(value, "sample") == 0);
    return value && *value && strcmp(value, "0") != 0;
}

} // namespace

void read_further_metrics(uint32_t before) {
    for (uint32_t group = 0; group < QUIPU_GROUPS; group++)
        wanted[group] = settle_of(group) && is_asked_for(group);
    __atomic_store_n(&first, before, __ATOMIC_RELEASE);
}

uint32_t further_metrics() {
    uint32_t count = 0;
    for (const Metric &metric : metrics)
        count += wanted[metric.group];
    return count;
}

const char *further_metric_lines() {
    static char lines[4096];
    size_t used = 0;
    lines[0] = '\0';
    for (const Metric &metric : metrics)
        if (wanted[metric.group])
            used += static_cast<size_t>(snprintf(lines + used, sizeof lines - used, "%s", metric.line));
    return lines;
}

bool is_further_max(uint32_t place) {
    uint32_t at = first;
    for (const Metric &metric : metrics) {
        if (wanted[metric.group] && at++ == place)
            return metric.is_max;
    }
    return false;
}

void describe_further_metrics() {
    for (uint32_t group = 0; group < QUIPU_GROUPS; group++)
        if (is_asked_for(group) && !settle_of(group))
            set_attribute(problems[group][0], problems[group][1]);
}

void count_before_flush(bool last) {
    for (uint32_t group = 0; group < QUIPU_GROUPS; group++)
        if (wanted[group])
            settle_of(group)(last);
}

} // namespace quipu

extern "C" {

uint32_t quipu_further_place(enum quipu_further_group group) {
    using namespace quipu;
    const uint32_t start = __atomic_load_n(&first, __ATOMIC_ACQUIRE);
    if (!start || !wanted[group])
        return 0;
    uint32_t left_out = 0; /* number of metrics before the group that nodes do not have */
    for (const Metric &metric : metrics) {
        if (metric.group == group)
            break;
        left_out += !wanted[metric.group];
    }
    return start - left_out;
}

enum quipu_in_mpi quipu_in_mpi(void) {
    using namespace quipu;
    constexpr char of_files[] = "MPI_File_"; /* MPI 4.0, chapter 14 */
    for (const Node *node = quipu_here(); node; node = node->up) {
        const RegionRecord *region = node->region ? region_of(node->region) : nullptr;
        if (region && region->is_mpi)
            return strncmp(region->text, of_files, sizeof of_files - 1) == 0 ? QUIPU_IN_MPI_IO : QUIPU_IN_MPI;
    }
    return QUIPU_NOT_IN_MPI;
}
}
