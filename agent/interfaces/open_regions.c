/* SPDX-License-Identifier: Apache-2.0 */
#include "interface.h"

static bool remember(struct quipu_open_regions *regions, const void *key, const char *name, bool is_phase) {
    const char *kept = quipu_region_name(name);
    if (kept == NULL || regions->count == QUIPU_OPEN_AT_ONCE)
        return false;
    regions->open[regions->count].key = key;
    regions->open[regions->count].name = kept;
    regions->open[regions->count++].is_phase = is_phase;
    return true;
}

void quipu_open(struct quipu_open_regions *regions, const void *key, const char *name) {
    if (remember(regions, key, name, false))
        quipu_region_begin(name);
}

void quipu_open_phase(struct quipu_open_regions *regions, const void *key, const char *name, long long iteration) {
    if (remember(regions, key, name, true))
        quipu_phase_begin(name, iteration);
}

bool quipu_close(struct quipu_open_regions *regions, const void *key) {
    for (unsigned i = regions->count; i-- > 0;) {
        if (regions->open[i].key != key)
            continue;
        const char *name = regions->open[i].name;
        const bool is_phase = regions->open[i].is_phase;
        for (unsigned after = i + 1; after < regions->count; after++)
            regions->open[after - 1] = regions->open[after];
        regions->count--;
        if (is_phase)
            quipu_phase_end(name);
        else
            quipu_region_end(name);
        return true;
    }
    return false;
}
