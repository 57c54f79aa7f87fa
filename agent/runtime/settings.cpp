// SPDX-License-Identifier: Apache-2.0
/* Copies settings at the start of the process. Profiles are created at first use, and again in each child of a fork.
 * The program may have emptied or overwritten its environment until then, as daemons do that show their state in the
 * list of processes. */
#include "settings.h"
#include "quipu_runtime.h"
#include "tree.h"

#include <stdlib.h>
#include <string.h>

namespace quipu {

namespace {

struct Setting {
    const char *name;
    char *value;
};

Setting settings[] = {
    {"QUIPU_CLOCK", nullptr},         {"QUIPU_COUNTERS", nullptr},   {"QUIPU_DIR", nullptr},
    {"QUIPU_FILES", nullptr},         {"QUIPU_FILTER", nullptr},     {"QUIPU_LAUNCHER", nullptr},
    {"QUIPU_MEMORY", nullptr},        {"QUIPU_MPI_REDUCE", nullptr}, {"QUIPU_MPI_WAIT", nullptr},
    {"QUIPU_OFFLOAD", nullptr},       {"QUIPU_PARAMETERS", nullptr}, {"QUIPU_PARENT", nullptr},
    {"QUIPU_PROFILE_LIMIT", nullptr}, {"QUIPU_RANK", nullptr},       {"QUIPU_RANKS", nullptr},
    {"QUIPU_RANK_COLUMNS", nullptr},  {"QUIPU_RATES", nullptr},      {"QUIPU_SAMPLE", nullptr},
    {"QUIPU_TIME_BUDGET", nullptr},
};

} // namespace

bool keep_settings() {
    for (Setting &own : settings) {
        const char *value = getenv(own.name);
        if (!value)
            continue;
        const size_t size = strlen(value) + 1;
        own.value = static_cast<char *>(keep(size));
        if (!own.value)
            return false;
        memcpy(own.value, value, size);
    }
    return true;
}

const char *setting(const char *name) {
    for (const Setting &own : settings)
        if (strcmp(own.name, name) == 0)
            return own.value;
    return nullptr;
}

} // namespace quipu

extern "C" const char *quipu_setting(const char *name) { return quipu::active ? quipu::setting(name) : getenv(name); }
