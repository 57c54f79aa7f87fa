/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers call paths with a hash table that is at most half full. */
#include "paths.h"

#include <stddef.h>
#include <stdlib.h>

static uint64_t hash_of(uint32_t parent, uint32_t region) {
    uint64_t hash = ((uint64_t)parent << 32 | region) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Returns the slot of a call path, or the free slot for it. */
static uint32_t *slot_of(const struct quipu_paths *paths, uint32_t parent, uint32_t region) {
    const uint64_t mask = 2 * (uint64_t)paths->room - 1;
    for (uint64_t at = hash_of(parent, region);; at++) {
        uint32_t *slot = &paths->slots[at & mask];
        if (*slot == 0 || (paths->parent[*slot - 1] == parent && paths->region[*slot - 1] == region))
            return slot;
    }
}

static bool larger(uint32_t **array, uint32_t room) {
    uint32_t *bigger = realloc(*array, room * sizeof *bigger);
    if (bigger != NULL)
        *array = bigger;
    return bigger != NULL;
}

static bool has_room(struct quipu_paths *paths) {
    if (paths->count < paths->room)
        return true;
    const uint32_t room = paths->room == 0 ? 256 : 2 * paths->room;
    uint32_t *slots = room > paths->room ? calloc(2 * (size_t)room, sizeof *slots) : NULL;
    if (slots == NULL || !larger(&paths->parent, room) || !larger(&paths->region, room)) {
        free(slots);
        paths->failed = true;
        return false;
    }
    free(paths->slots);
    paths->slots = slots;
    paths->room = room;
    for (uint32_t path = 0; path < paths->count; path++)
        *slot_of(paths, paths->parent[path], paths->region[path]) = path + 1;
    return true;
}

void quipu_paths_end(struct quipu_paths *paths) {
    free(paths->parent);
    free(paths->region);
    free(paths->slots);
    *paths = (struct quipu_paths){0};
}

bool quipu_paths_add(struct quipu_paths *paths, uint32_t nodes, const uint32_t *parent, const uint32_t *region,
                     uint32_t *path) {
    for (uint32_t i = 0; i < nodes; i++) {
        if ((parent[i] != QUIPU_ROOT && parent[i] >= i) || !has_room(paths))
            return false;
        const uint32_t above = parent[i] == QUIPU_ROOT ? QUIPU_ROOT : path[parent[i]];
        uint32_t *slot = slot_of(paths, above, region[i]);
        if (*slot == 0) {
            paths->parent[paths->count] = above;
            paths->region[paths->count] = region[i];
            *slot = ++paths->count;
        }
        path[i] = *slot - 1;
    }
    return true;
}

/* Sets place[path] to the number of a call path in an order level by level. depth and room are temporary arrays:
 * `depth` has one element per call path, `room` has one more, and both are 0. */
static void place_by_level(const struct quipu_paths *paths, uint32_t *depth, uint32_t *room, uint32_t *place) {
    for (uint32_t path = 0; path < paths->count; path++) {
        depth[path] = paths->parent[path] == QUIPU_ROOT ? 0 : depth[paths->parent[path]] + 1;
        room[depth[path] + 1]++;
    }
    for (uint32_t level = 1; level < paths->count; level++)
        room[level] += room[level - 1];
    for (uint32_t path = 0; path < paths->count; path++)
        place[path] = room[depth[path]]++;
}

int64_t quipu_unify(uint32_t nodes, const uint32_t *parent, const uint32_t *region, uint32_t *path,
                    uint32_t *tree_parent, uint32_t *tree_region) {
    struct quipu_paths paths = {0};
    int64_t result = QUIPU_NO_FOREST;
    if (quipu_paths_add(&paths, nodes, parent, region, path)) {
        uint32_t *numbers = calloc(3 * (size_t)paths.count + 1, sizeof *numbers), *place = numbers;
        paths.failed = numbers == NULL;
        if (numbers != NULL) {
            place_by_level(&paths, numbers + paths.count, numbers + 2 * (size_t)paths.count, place);
            for (uint32_t i = 0; i < paths.count; i++) {
                tree_parent[place[i]] = paths.parent[i] == QUIPU_ROOT ? QUIPU_ROOT : place[paths.parent[i]];
                tree_region[place[i]] = paths.region[i];
            }
            for (uint32_t i = 0; i < nodes; i++)
                path[i] = place[path[i]];
            result = paths.count;
        }
        free(numbers);
    }
    if (paths.failed)
        result = QUIPU_NO_MEMORY;
    quipu_paths_end(&paths);
    return result;
}
